"""PyTorch's checkpoint formats: zip container, legacy stream, pickling of tensors, restricted unpickling."""
