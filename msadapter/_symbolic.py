"""torch.SymInt and similar classes of PyTorch's tracer, and the sym_ functions for ordinary numbers.

Nothing is traced, so there are no symbolic numbers but one kind: the length of the ragged dim of a nested tensor. The other
classes exist because programs ask `isinstance(x, torch.SymFloat)`. The functions accept Python numbers.
"""

from __future__ import annotations

import math

from ._errors import unsupported
from ._values.size import SymInt

__all__ = [
    "Graph",
    "SymBool",
    "SymFloat",
    "SymInt",
    "Value",
    "sym_float",
    "sym_int",
    "sym_ite",
    "sym_max",
    "sym_min",
    "sym_not",
    "sym_sqrt",
    "sym_sum",
]


class _Symbolic:
    def __init__(self, *args, **kwargs):
        raise unsupported(f"{type(self).__module__}.{type(self).__qualname__}")


class SymFloat(_Symbolic):
    """The class of symbolic real numbers. There are no instances."""

    __module__ = "torch"


class SymBool(_Symbolic):
    """The class of symbolic truth values. There are no instances."""

    __module__ = "torch"


class Graph(_Symbolic):
    """torch._C.Graph, the program class of TorchScript, which exporters use in annotations. No instances."""

    __module__ = "torch._C"


class Value(_Symbolic):
    """torch._C.Value, a result in a Graph. There are no instances."""

    __module__ = "torch._C"


def sym_int(a) -> int:
    """Return ``a`` rounded towards zero, as an int."""
    return int(a)


def sym_float(a) -> float:
    return float(a)


def sym_not(a) -> bool:
    return not a


def sym_max(a, b):
    """Return the larger number. It is a float if either one is."""
    larger = max(a, b)
    return float(larger) if isinstance(a, float) or isinstance(b, float) else larger


def sym_min(a, b):
    """Return the smaller number. It is a float if either one is."""
    smaller = min(a, b)
    return float(smaller) if isinstance(a, float) or isinstance(b, float) else smaller


def sym_ite(b, t, f):
    """Return ``t`` if ``b`` is true, else ``f``. Both must have the same type."""
    if not isinstance(b, bool) or type(t) is not type(f):
        raise AssertionError("sym_ite takes a bool and two values of one type")
    return t if b else f


def sym_sum(*args):
    """Return the sum of numbers, which are given one by one or as one sequence."""
    terms = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    return sum(terms)


def sym_sqrt(a) -> float:
    return math.sqrt(a)
