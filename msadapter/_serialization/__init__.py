"""PyTorch's checkpoint formats: the zip container, the legacy stream, pickling and restricted unpickling."""
