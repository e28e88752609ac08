"""torch._foreach_*: functions that apply an operator to each tensor of a list."""

from __future__ import annotations

from .._values.base import Base
from ._declare import t

FUNCTIONS: dict = {}
_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round "
    "rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"
)


def _tensors(self) -> list:
    """Return the list. RuntimeError if it is empty."""
    tensors = list(self)
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return tensors


def _spread(other, count: int, *, one_each: bool = False) -> list:
    """Return the second operand for each of ``count`` tensors.

    A list gives one element to each tensor. A number or a 0-dimensional tensor is used for all. With
    ``one_each``, a 1-dimensional tensor holds a number for each tensor.
    """
    if isinstance(other, Base):
        if one_each and other.ndim == 1:
            other = other.tolist()
        elif other.ndim or other.numel() != 1:
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {other.ndim} dimensions and {other.numel()} elements."
            )
    if not isinstance(other, (list, tuple)):
        return [other] * count
    if len(other) != count:
        if other and not isinstance(other[0], Base):
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        raise RuntimeError(f"Tensor lists must have the same number of tensors, got {count} and {len(other)}")
    return list(other)


def _declare(name: str, function) -> None:
    """Declare ``function(list, ...) -> list`` as _foreach_<name> and, if it can write into the list,
    _foreach_<name>_.
    """

    def fresh(self, *args, **kwargs):
        return tuple(function(_tensors(self), *args, **kwargs))

    def inplace(self, *args, **kwargs):
        tensors = _tensors(self)
        for tensor, value in zip(tensors, function(tensors, *args, **kwargs), strict=True):
            tensor.copy_(value)
        return self

    for kind, suffix in ((fresh, ""), (inplace, "_")):
        kind.__name__ = kind.__qualname__ = f"_foreach_{name}{suffix}"
        kind.__doc__ = f"`{name}` of each tensor" + (", in place." if suffix else ", as a tuple.")
        FUNCTIONS[kind.__name__] = kind


def _unary(name: str):
    return lambda self: [getattr(t, name)(x) for x in self]


def _binary(name: str):
    def run(self, other, *, alpha=None):
        options = {} if alpha is None else {"alpha": alpha}
        if alpha is not None and not isinstance(other, (Base, list, tuple)):
            raise TypeError(f"_foreach_{name}(): alpha goes with tensors only")
        operator = getattr(t, name)
        return [operator(x, y, **options) for x, y in zip(self, _spread(other, len(self)), strict=True)]

    return run


def _bound(name: str):
    """Declare maximum, minimum and their clamp forms, which convert numbers to tensors of the dtype."""

    def run(self, other):
        pairs = zip(self, _spread(other, len(self)), strict=True)
        return [getattr(t, name)(x, y if isinstance(y, Base) else x.new_tensor(y)) for x, y in pairs]

    return run


def _fused(name: str):
    def run(self, tensor1, tensor2, value=1, *, scalars=None):
        count = len(self)
        values = _spread(value if scalars is None else scalars, count, one_each=True)
        rows = zip(self, _spread(tensor1, count), _spread(tensor2, count), values, strict=True)
        return [getattr(t, name)(x, a, b, value=v) for x, a, b, v in rows]

    return run


def _lerp(self, tensors1, weight):
    ends, weights = _spread(tensors1, len(self)), _spread(weight, len(self))
    return [t.lerp(x, y, w) for x, y, w in zip(self, ends, weights, strict=True)]


for _name in _UNARY.split():
    _declare(_name, _unary(_name))
for _name in ("add", "sub", "mul", "div"):
    _declare(_name, _binary(_name))
for _name, _operator in (
    ("maximum", "maximum"),
    ("minimum", "minimum"),
    ("clamp_min", "maximum"),
    ("clamp_max", "minimum"),
):
    _declare(_name, _bound(_operator))
for _name in ("addcmul", "addcdiv"):
    _declare(_name, _fused(_name))
_declare("lerp", _lerp)
_declare(
    "pow",
    lambda self, exponent: [t.pow(x, y) for x, y in zip(self, _spread(exponent, len(self)), strict=True)],
)
_power_of_list = FUNCTIONS["_foreach_pow"]


def _foreach_pow(self, exponent):
    """Raise each tensor to a power, or one number to the powers in each tensor."""
    if isinstance(self, (int, float, complex)):
        return tuple(t.pow(self, x) for x in _tensors(exponent))
    return _power_of_list(self, exponent)


def _foreach_zero_(self):
    """Fill each tensor with zeros."""
    for x in _tensors(self):
        x.zero_()
    return self


def _foreach_copy_(self, src, non_blocking=False):
    """Copy the tensors of ``src`` into those of ``self``."""
    tensors = _tensors(self)
    for x, y in zip(tensors, _spread(src, len(tensors)), strict=True):
        x.copy_(y)
    return self


def _foreach_clone(self, *, memory_format=None):
    """Return a copy of each tensor."""
    return tuple(x.clone() for x in _tensors(self))


def _foreach_max(self):
    """Return the largest element of each tensor."""
    return tuple(x.max() for x in _tensors(self))


def _foreach_mm(self, mat2):
    """Return the matrix product of each pair."""
    tensors = _tensors(self)
    return tuple(t.mm(x, y) for x, y in zip(tensors, _spread(mat2, len(tensors)), strict=True))


def _foreach_powsum(self, ord=2, dtype=None):
    """Return the sum of |x|^ord for each tensor."""
    return tuple((x if dtype is None else x.to(dtype)).abs().pow(ord).sum() for x in _tensors(self))


for _function in (
    _foreach_pow,
    _foreach_zero_,
    _foreach_copy_,
    _foreach_clone,
    _foreach_max,
    _foreach_mm,
    _foreach_powsum,
):
    FUNCTIONS[_function.__name__] = _function
