"""torch.SymInt and its like: the numbers of PyTorch's tracer, and the sym_ functions on ordinary numbers.

Nothing here makes a symbolic number, as there is no tracer of shapes; programs ask `isinstance(x, torch.SymInt)`, and the
functions take Python's numbers.
"""

from __future__ import annotations

import math


class _Symbolic:
    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            f"{type(self).__module__}.{type(self).__qualname__} is not supported (docs/coverage.md)"
        )


class SymInt(_Symbolic):
    """Class of a symbolic integer; has no instances."""

    __module__ = "torch"


class SymFloat(_Symbolic):
    """Class of a symbolic real number; has no instances."""

    __module__ = "torch"


class SymBool(_Symbolic):
    """Class of a symbolic truth value; has no instances."""

    __module__ = "torch"


class Graph(_Symbolic):
    """torch._C.Graph, TorchScript's program, which exporters name in annotations; has no instances."""

    __module__ = "torch._C"


class Value(_Symbolic):
    """torch._C.Value, a result in a Graph; has no instances."""

    __module__ = "torch._C"


def sym_int(a) -> int:
    """``a`` cut towards zero."""
    return int(a)


def sym_float(a) -> float:
    return float(a)


def sym_not(a) -> bool:
    return not a


def sym_max(a, b):
    """The larger; a float if either is one."""
    larger = max(a, b)
    return float(larger) if isinstance(a, float) or isinstance(b, float) else larger


def sym_min(a, b):
    """The smaller; a float if either is one."""
    smaller = min(a, b)
    return float(smaller) if isinstance(a, float) or isinstance(b, float) else smaller


def sym_ite(b, t, f):
    """``t`` if ``b``, else ``f``; both of one type."""
    if not isinstance(b, bool) or type(t) is not type(f):
        raise AssertionError("sym_ite takes a bool and two values of one type")
    return t if b else f


def sym_sum(*args):
    """Sum of numbers, given one by one or as one sequence."""
    terms = args[0] if len(args) == 1 and isinstance(args[0], (list, tuple)) else args
    return sum(terms)


def sym_sqrt(a) -> float:
    return math.sqrt(a)
