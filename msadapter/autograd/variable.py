"""torch.autograd.variable: the older name of Tensor, as a constructor and for isinstance."""

from __future__ import annotations

import warnings

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
        RuntimeError: requires_grad is set for data of a dtype that has no gradients.
    """

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad=False, volatile=False, _grad_fn=None, name=None):
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
                stacklevel=2,
            )
        if volatile and requires_grad:
            raise ValueError("Variable can't be volatile and require_grad at the same time!")
        if data is None:
            data = Tensor()
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        if requires_grad and not (data.is_floating_point() or data.is_complex()):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        return data.detach().requires_grad_(bool(requires_grad))


Variable.__module__ = "torch.autograd.variable"
