"""torch.testing._internal: parts of PyTorch's own tests that other programs import."""
