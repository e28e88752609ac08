"""Functions that TransformerEngine implements in C++."""

from .fp8 import no_eight_bits


def cast_to_fp8(*args, **kwargs):
    """An 8-bit copy of a tensor. Not supported: raises NotImplementedError."""
    raise no_eight_bits()
