"""Functions that TransformerEngine implements in C++."""

from .fp8 import unsupported


def cast_to_fp8(*args, **kwargs):
    """An 8-bit copy of a tensor. Not supported: raises NotImplementedError."""
    raise unsupported()
