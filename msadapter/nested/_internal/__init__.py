"""The class of nested tensors with the jagged layout, where PyTorch has it."""
