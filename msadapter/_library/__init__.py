"""torch._library: the modules that implement torch.library in PyTorch."""
