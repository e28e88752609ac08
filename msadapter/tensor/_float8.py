"""Operators of float8 tensors. The dispatcher calls this module if no kernel accepts the operands.

As in PyTorch, they are computed in float32 and rounded once.
"""

from __future__ import annotations

from .._values.base import _C, Base
from .._values.dtype import ALL, STORED
from ..ops._declare import t

# the result has the dtype of the operands
_SAME = ("mul", "mul_", "multiply", "abs", "absolute", "mm", "matmul")
_INFINITE = ("isinf", "isfinite")  # not for float8_e4m3fn, which has no infinities
_BOOL = ("eq", "ne", "not_equal", "isnan", *_INFINITE)
_BOTH = ("mul", "mul_", "multiply", "mm", "matmul")  # both operands must be tensors


def compute(function, args):
    """Return the result for float8 operands, or NotImplemented if PyTorch has no kernel either."""
    name = function.__name__.rpartition(".")[2]
    tensors = [a for a in args if isinstance(a, Base)]
    kinds = {a.dtype for a in tensors}
    if name not in _SAME + _BOOL or len(kinds) != 1 or (name in _BOTH and len(tensors) != 2):
        return NotImplemented
    if name == "matmul" and any(a.ndim != 2 for a in tensors):
        return NotImplemented
    kind = kinds.pop()
    if name in _INFINITE and kind is not STORED["float8_e5m2"]:
        return NotImplemented
    wide = [a.to(ALL["float32"]) if isinstance(a, Base) else a for a in args]
    if name == "mul_":
        return args[0].copy_(t.mul(*wide).to(kind))
    found = function(*wide)
    return found.to(kind) if name in _SAME else found


if STORED:
    _C.set_float8_handler(compute)
