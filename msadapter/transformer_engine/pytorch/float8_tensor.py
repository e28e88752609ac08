"""The class of eight-bit parameters, for isinstance: there are none."""

from ... import Tensor
from .fp8 import unsupported


class Float8Tensor(Tensor):
    """A parameter kept in eight bits; making one is an error."""

    def __new__(cls, *args, **kwargs):
        raise unsupported()
