"""torch.utils._sympy: numbers of PyTorch's symbolic shapes; there are none here, programs only ask for their classes."""
