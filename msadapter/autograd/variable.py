"""torch.autograd.variable: the older name of Tensor, as a constructor and for isinstance."""

from __future__ import annotations

from ..tensor import Tensor
from ._passes import _Engine

__all__ = ["Variable", "VariableMeta"]


class VariableMeta(type):
    """Makes every tensor an instance of Variable."""

    def __instancecheck__(cls, other) -> bool:
        return isinstance(other, Tensor)


class Variable(metaclass=VariableMeta):
    """Variable(data) returns a leaf tensor that shares memory with ``data``.

    Raises:
        TypeError: data is not a tensor.
        ValueError: volatile and requires_grad are both set.
    """

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad=False, volatile=False, _grad_fn=None, name=None):
        if volatile and requires_grad:
            raise ValueError("Variable can't be volatile and require_grad at the same time!")
        if data is None:
            data = Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        return data.detach().requires_grad_(bool(requires_grad))


Variable.__module__ = "torch.autograd.variable"
