"""Functions that TransformerEngine has in C++."""

from .fp8 import unsupported


def cast_to_fp8(*args, **kwargs):
    """Eight-bit copy of a tensor: NotImplementedError."""
    raise unsupported()
