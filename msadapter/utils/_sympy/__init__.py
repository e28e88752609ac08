"""torch.utils._sympy: numbers of PyTorch's symbolic shapes. There are none here; programs use the classes in isinstance checks."""
