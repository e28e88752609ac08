"""FunctionalTensor: the wrapper with which PyTorch's tracers remove in-place operations from a program."""

from __future__ import annotations

from .._errors import unsupported
from ..tensor import Tensor

__all__ = ["FunctionalTensor"]


class FunctionalTensor(Tensor):
    """The class of such tensors. Creating one raises NotImplementedError."""

    def __new__(cls, *args, **kwargs):
        raise unsupported("torch._subclasses.functional_tensor.FunctionalTensor")
