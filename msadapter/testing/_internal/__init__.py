"""torch.testing._internal: what programs take from PyTorch's own tests."""
