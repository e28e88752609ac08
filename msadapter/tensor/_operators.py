"""Python operators of Tensor that need more than a function of the table.

These are reflected operators, operands of other types, and conversions to Python numbers.
"""

from __future__ import annotations

import numbers

import numpy as np

from .._host import extensions
from .._values.dtype import ALIASES, ALL
from ..ops._declare import namespaces, t
from ._construct import from_numpy, tensor


def _is_operand(x, tensor_class) -> bool:
    return isinstance(x, (tensor_class, numbers.Number, np.generic))


def _guarded(function, tensor_class, name, *, arrays=True, own_name=False):
    """Return the operator ``name``, which calls ``function``.

    It gives NotImplemented for operands that are neither tensors nor numbers, so that Python asks the operand's own operator.
    An operand that has ``__torch_function__`` is asked by that, which receives the operator itself if ``own_name`` is true, and
    ``function`` otherwise. Numpy's arrays are operands if ``arrays`` is true.
    """

    usual = frozenset((tensor_class, int, float, bool, complex))  # asked first, because isinstance is slower

    def method(self, other):
        if type(other) in usual or _is_operand(other, tensor_class):
            return function(self, other)
        if hasattr(type(other), "__torch_function__"):
            if own_name:
                return extensions.foreign_operand.value(method, (self, other), {})
            return function(self, other)
        if arrays and isinstance(other, np.ndarray):
            return function(self, from_numpy(other))
        return NotImplemented

    method.__name__ = name
    return method


def _as_tensor_like(value, like):
    return tensor(value, dtype=None, device=like.device) if not hasattr(value, "untyped_storage") else value


def _invert(self):
    if self.dtype.is_floating_point or self.dtype.is_complex:
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return t.bitwise_not(self)


# Operators whose operands may change places, and the others as functions of the right and the left operand.
_SAME_REFLECTED = {"add": "add", "mul": "mul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor"}
_REFLECTED = {
    "sub": lambda self, other: t.rsub(self, other),
    "truediv": lambda self, other: t.mul(t.reciprocal(self), other),
    "floordiv": lambda self, other: t.floor_divide(_as_tensor_like(other, self), self),
    "mod": lambda self, other: t.remainder(_as_tensor_like(other, self), self),
    "pow": lambda self, other: t.pow(other, self),
    "lshift": lambda self, other: t.bitwise_left_shift(_as_tensor_like(other, self), self),
    "rshift": lambda self, other: t.bitwise_right_shift(_as_tensor_like(other, self), self),
    "matmul": lambda self, other: t.matmul(_as_tensor_like(other, self), self),
}


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
            bitwise = torch_name.startswith("bitwise")  # PyTorch calls these by the operator's name
            setattr(cls, f"__{name}__", _guarded(function, cls, f"__{name}__", own_name=bitwise))
        inplace = have(f"__i{name}__")
        if inplace is not None:
            setattr(
                cls, f"__i{name}__", _guarded(inplace, cls, f"__i{name}__", arrays=False, own_name=bitwise)
            )
    for name, torch_name in _SAME_REFLECTED.items():
        setattr(cls, f"__r{name}__", _guarded(have(torch_name), cls, f"__r{name}__"))
    for name, function in _REFLECTED.items():
        setattr(cls, f"__r{name}__", _guarded(function, cls, f"__r{name}__", own_name=True))
    cls.__rdiv__ = cls.__rtruediv__
    cls.__neg__ = lambda self: t.neg(self)
    cls.__pos__ = lambda self: t.positive(self)
    cls.__abs__ = lambda self: t.abs(self)
    cls.__invert__ = _invert
    cls.__div__, cls.__idiv__ = cls.__truediv__, cls.__itruediv__
    cls.__long__, cls.__nonzero__ = cls.__int__, cls.__bool__
    cls.__ipow__ = _guarded(lambda self, other: t.pow_(self, other), cls, "__ipow__", arrays=False)
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
