"""Operators of float8 tensors. The dispatcher calls this module if no kernel accepts the operands.

As in PyTorch, they are computed in float32 and rounded once.
"""

from __future__ import annotations

from .._values.base import _C, Base
from .._values.dtype import ALL, STORED
from ..ops._declare import declaration_of


def compute(function, args):
    """Return the result for float8 operands, or NotImplemented if PyTorch has no kernel either."""
    declaration, inplace = declaration_of(function)
    allowed = declaration.facts.float8 if declaration is not None else None
    tensors = [a for a in args if isinstance(a, Base)]
    kinds = {a.dtype for a in tensors}
    if allowed is None or len(kinds) != 1 or (allowed == "tensors" and len(tensors) != 2):
        return NotImplemented
    if declaration.schema.name == "matmul" and any(a.ndim != 2 for a in tensors):
        return NotImplemented
    kind = kinds.pop()
    if allowed == "infinite" and kind is not STORED["float8_e5m2"]:
        return NotImplemented
    wide = [a.to(ALL["float32"]) if isinstance(a, Base) else a for a in args]
    found = declaration.function(*wide)
    found = found.to(kind) if found.dtype is ALL["float32"] else found
    return args[0].copy_(found) if inplace else found


if STORED:
    _C.set_float8_handler(compute)
