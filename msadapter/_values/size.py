"""torch.Size."""

from __future__ import annotations

import math

from .._errors import unsupported


class SymInt:
    """The class of symbolic integers. Its only instances are the ragged lengths of nested tensors."""

    __module__ = "torch"

    def __init__(self, *args, **kwargs):
        raise unsupported("torch.SymInt", "symbolic numbers of a tracer are not supported")


class NestedInt(SymInt):
    """The length of a dim that differs from one part of a nested tensor to the next.

    It has no value. Two of them are equal if they stand for the same lengths, times the same factor.

    Attributes:
        number: which lengths it stands for. Tensors that share their offsets have the same one.
        factor: a number by which the lengths are multiplied, as in the strides of a nested tensor.
    """

    __slots__ = ("factor", "number")

    def __init__(self, number: int, factor: int = 1):
        self.number, self.factor = number, factor

    def __repr__(self) -> str:
        return f"j{self.number}" if self.factor == 1 else f"{self.factor}*j{self.number}"

    def __eq__(self, other):
        return isinstance(other, NestedInt) and (self.number, self.factor) == (other.number, other.factor)

    def __hash__(self) -> int:
        return hash(self.number)

    def __mul__(self, other):
        if not isinstance(other, int):
            return NotImplemented
        return NestedInt(self.number, self.factor * other)

    __rmul__ = __mul__

    def __ge__(self, other):
        """As in PyTorch, a length counts as at least 2, and nothing else is known of it."""
        if isinstance(other, NestedInt) and other.number == self.number:
            return self.factor >= other.factor
        if isinstance(other, int) and other <= 2:
            return True
        raise ValueError("ge: relation is indeterminate")

    def __lt__(self, other):
        return not self >= other

    def __le__(self, other):
        if isinstance(other, NestedInt):
            return other >= self
        if isinstance(other, int) and other < 2:
            return False
        raise ValueError("ge: relation is indeterminate")

    def __gt__(self, other):
        return not self <= other


NestedInt.__name__ = NestedInt.__qualname__ = "SymInt"
NestedInt.__module__ = "torch"


class Size(tuple):
    """The shape of a tensor: a tuple of ints. The ragged dim of a nested tensor is a SymInt."""

    __slots__ = ()

    def __new__(cls, sizes=()):
        sizes = tuple(sizes)
        for i, s in enumerate(sizes):
            if not hasattr(s, "__index__"):
                if isinstance(s, SymInt):
                    return tuple.__new__(cls, (d if isinstance(d, SymInt) else d.__index__() for d in sizes))
                raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{type(s).__name__}')")
        return tuple.__new__(cls, (s.__index__() for s in sizes))

    def numel(self) -> int:
        """Return the number of elements."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __add__(self, other):
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple.__add__(self, other))

    def __radd__(self, other):
        return Size(tuple.__add__(tuple(other), self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, other):
        return Size(tuple.__mul__(self, other))

    __rmul__ = __mul__

    def __getitem__(self, index):
        item = tuple.__getitem__(self, index)
        return Size(item) if isinstance(index, slice) else item

    def __reduce__(self):
        return Size, (tuple(self),)


Size.__module__ = "torch"
