"""The class of 8-bit parameters, for isinstance checks. There are no instances."""

from ... import Tensor
from .fp8 import no_eight_bits


class Float8Tensor(Tensor):
    """A parameter in 8 bits. Creating one raises NotImplementedError."""

    def __new__(cls, *args, **kwargs):
        raise no_eight_bits()
