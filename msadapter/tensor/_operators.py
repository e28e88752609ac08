"""Python operators of Tensor that need more than a function of the table.

These are reflected operators, operands of other types, and conversions to Python numbers.
"""

from __future__ import annotations

import numbers

import numpy as np

from .._values.dtype import ALIASES, ALL
from ..ops._declare import namespaces, t
from ._construct import from_numpy, tensor


def _is_operand(x, tensor_class) -> bool:
    return isinstance(x, (tensor_class, numbers.Number, np.generic))


def _reflected(function):
    def method(self, other):
        return function(other, self)

    return method


def _guarded(function, tensor_class):
    """Return NotImplemented for operands that are neither tensors nor numbers."""

    def method(self, other):
        if not _is_operand(other, tensor_class):
            if isinstance(other, np.ndarray):
                return function(self, from_numpy(other))
            return NotImplemented
        return function(self, other)

    return method


def _as_tensor_like(value, like):
    return tensor(value, dtype=None, device=like.device) if not hasattr(value, "untyped_storage") else value


def _invert(self):
    if self.dtype.is_floating_point or self.dtype.is_complex:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return t.bitwise_not(self)


def install(cls) -> None:
    """Add the operators to the Tensor class."""
    table = namespaces["Tensor"]

    def have(name):
        return table.get(name)

    for name, torch_name in {
        "add": "add",
        "sub": "sub",
        "mul": "mul",
        "truediv": "true_divide",
        "floordiv": "floor_divide",
        "mod": "remainder",
        "pow": "pow",
        "and": "bitwise_and",
        "or": "bitwise_or",
        "xor": "bitwise_xor",
        "lshift": "bitwise_left_shift",
        "rshift": "bitwise_right_shift",
        "eq": "eq",
        "ne": "ne",
        "lt": "lt",
        "le": "le",
        "gt": "gt",
        "ge": "ge",
        "matmul": "matmul",
    }.items():
        function = have(torch_name)
        if function is not None:
            setattr(cls, f"__{name}__", _guarded(function, cls))
    cls.__rmatmul__ = lambda self, other: t.matmul(_as_tensor_like(other, self), self)
    cls.__radd__ = _guarded(t.add, cls)
    cls.__rmul__ = _guarded(t.mul, cls)
    cls.__rsub__ = lambda self, other: (
        t.rsub(self, other) if hasattr(t, "rsub") else t.add(t.neg(self), other)
    )
    cls.__rtruediv__ = lambda self, other: t.mul(t.reciprocal(self), other)
    cls.__rdiv__ = cls.__rtruediv__
    cls.__rfloordiv__ = lambda self, other: t.floor_divide(_as_tensor_like(other, self), self)
    cls.__rmod__ = lambda self, other: t.remainder(_as_tensor_like(other, self), self)
    cls.__rpow__ = lambda self, other: t.pow(other, self)
    cls.__rand__ = _guarded(t.bitwise_and, cls)
    cls.__ror__ = _guarded(t.bitwise_or, cls)
    cls.__rxor__ = _guarded(t.bitwise_xor, cls)
    cls.__rlshift__ = lambda self, other: t.bitwise_left_shift(_as_tensor_like(other, self), self)
    cls.__rrshift__ = lambda self, other: t.bitwise_right_shift(_as_tensor_like(other, self), self)
    cls.__neg__ = lambda self: t.neg(self)
    cls.__pos__ = lambda self: t.positive(self)
    cls.__abs__ = lambda self: t.abs(self)
    cls.__invert__ = _invert
    cls.__div__, cls.__idiv__ = cls.__truediv__, cls.__itruediv__
    cls.__long__, cls.__nonzero__ = cls.__int__, cls.__bool__
    cls.__ipow__ = lambda self, other: t.pow_(self, other)
    for short, full in ALIASES.items():
        if short not in ("cfloat", "cdouble"):
            setattr(cls, short, _cast_method(full))
    for name in ("cfloat", "cdouble", "bfloat16", "bool"):
        setattr(cls, name, _cast_method(ALIASES.get(name, name)))
    cls.byte, cls.char = _cast_method("uint8"), _cast_method("int8")


def _cast_method(name: str):
    target = ALL[name]

    def cast(self, memory_format=None):
        return self.to(target, memory_format=memory_format)

    cast.__doc__ = f"Tensor.to(torch.{name})"
    return cast
