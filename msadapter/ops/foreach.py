"""torch._foreach_*: functions that apply an operator to each tensor of a list.

For an operator whose declaration states ``foreach``, this module makes two functions, of which the second works in place.
"""

from __future__ import annotations

from .._values.base import Base
from ._declare import declarations, t
from ._facts import Declaration

FUNCTIONS: dict = {}


def _tensors(self) -> list:
    """Return the list. RuntimeError if it is empty."""
    tensors = list(self)
    if not tensors:
        raise RuntimeError("Tensor list must have at least one tensor.")
    return tensors


def _factors(value, count: int) -> list:
    """Return the factor of each of ``count`` tensors: one number for all, a list, or a tensor with one dim.

    Raises:
        RuntimeError: the tensor has other dims, or another number of elements.
    """
    if not isinstance(value, Base):
        return _spread(value, count)
    if value.ndim != 1:
        raise RuntimeError(f"Expected packed scalar Tensor to be of dimension 1. Got {value.ndim} instead.")
    if value.numel() != count:
        raise RuntimeError(
            f"Expected length of scalars to match input of length {count} but got {value.numel()} instead."
        )
    return value.tolist()


def _spread(other, count: int) -> list:
    """Return the second operand for each of ``count`` tensors.

    A list gives one element to each tensor. A number or a 0-dimensional tensor is used for all.
    """
    if isinstance(other, Base) and (other.ndim or other.numel() != 1):
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


# Each of these returns a function of the arguments of _foreach_<name> that lists (operands, options) for each tensor.
def _unary(name: str):
    return lambda self: [((x,), {}) for x in self]


def _binary(name: str):
    """The second operand is called ``scalar`` or ``scalars`` in the forms for numbers."""

    def calls(self, *other, alpha=None, **named):
        operands = (*other, *named.values())
        if len(operands) != 1 or not named.keys() <= {"other", "exponent", "scalar", "scalars"}:
            raise TypeError(f"_foreach_{name}() received an invalid combination of arguments")
        if alpha is not None and not isinstance(operands[0], (Base, list, tuple)):
            raise TypeError(
                f"_foreach_{name}() received an invalid combination of arguments: alpha goes with tensors only"
            )
        if isinstance(operands[0], (list, tuple)) and not operands[0]:
            raise RuntimeError("Tensor list must have same number of elements as scalar list.")
        options = {} if alpha is None else {"alpha": alpha}
        return [((x, y), options) for x, y in zip(self, _spread(operands[0], len(self)), strict=True)]

    return calls


def _ternary(name: str):
    def calls(self, tensors1, weight):
        count = len(self)
        rows = zip(self, _spread(tensors1, count), _spread(weight, count), strict=True)
        return [(row, {}) for row in rows]

    return calls


def _with_value(name: str):
    def calls(self, tensor1, tensor2, value=1, *, scalars=None):
        count = len(self)
        values = _factors(value if scalars is None else scalars, count)
        rows = zip(self, _spread(tensor1, count), _spread(tensor2, count), values, strict=True)
        return [((x, a, b), {"value": v}) for x, a, b, v in rows]

    return calls


def _kind(declaration: Declaration):
    """Return which of these functions fits the operands in the schema."""
    operands = [p.name for p in declaration.schema.parameters if not p.keyword_only]
    if len(operands) < 3:
        return (_unary, _binary)[len(operands) - 1]
    return _with_value if "value" in [p.name for p in declaration.schema.parameters] else _ternary


def _declare(declaration: Declaration) -> None:
    """Make ``_foreach_<name>(list, ...)``, which returns a tuple, and ``_foreach_<name>_``, which writes to the list."""
    name, foreach = declaration.schema.name, declaration.facts.foreach
    calls = _kind(declaration)(name)

    def apply(suffix, self, args, kwargs) -> list:
        made = []
        for operands, options in calls(_tensors(self), *args, **kwargs):
            number = isinstance(foreach, str) and not isinstance(operands[1], Base)
            operator = getattr(t, (foreach if number else name) + suffix)
            made.append(operator(*operands, **options))
        return made

    def fresh(self, *args, **kwargs):
        return tuple(apply("", self, args, kwargs))

    def inplace(self, *args, **kwargs):
        apply("_", self, args, kwargs)
        return self

    for kind, suffix in ((fresh, ""), (inplace, "_")):
        kind.__name__ = kind.__qualname__ = f"_foreach_{name}{suffix}"
        kind.__doc__ = f"`{name}` of each tensor" + (", in place." if suffix else ", as a tuple.")
        FUNCTIONS[kind.__name__] = kind


for _declaration in declarations.values():
    if _declaration.facts.foreach:
        _declare(_declaration)
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
    return tuple(x.clone(memory_format=memory_format) for x in _tensors(self))


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
