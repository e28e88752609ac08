"""Operators of tensors whose type is only stored: float8 and complex32. The dispatcher calls this module if no kernel accepts them.

As in PyTorch, they are computed in float32 or complex64 and rounded once.
"""

from __future__ import annotations

from .._values.base import _C, Base
from .._values.dtype import ALL, STORED, STORED_WIDE
from ..ops._declare import declaration_of

_HALF, _COMPLEX32 = ALL["float16"], STORED["complex32"]


def compute(function, args, named):
    """Return the result for such operands, or NotImplemented if PyTorch has no kernel either."""
    declaration, inplace = declaration_of(function)
    if declaration is None or "out" in named:
        return NotImplemented
    tensors = [a for a in (*args, *named.values()) if isinstance(a, Base)]
    kinds = {a.dtype for a in tensors}
    complex_beside = any(isinstance(a, complex) for a in args) or any(d.is_complex for d in kinds)
    if _COMPLEX32 in kinds or (_HALF in kinds and complex_beside):
        return _in_complex64(declaration, inplace, args, named)
    return NotImplemented if named else _in_float32(declaration, inplace, args, tensors, kinds)


def _in_complex64(declaration, inplace, args, named):
    if not declaration.facts.complex32:
        return NotImplemented

    def wide(a):
        if not isinstance(a, Base) or a.dtype not in (_COMPLEX32, _HALF):
            return a
        return a.to(STORED_WIDE[_COMPLEX32] if a.dtype is _COMPLEX32 else ALL["float32"])

    found = declaration.function(*map(wide, args), **{name: wide(a) for name, a in named.items()})
    narrow = {ALL["complex64"]: _COMPLEX32, ALL["float32"]: _HALF}
    found = found.to(narrow.get(found.dtype, found.dtype))
    return args[0].copy_(found) if inplace else found


def _in_float32(declaration, inplace, args, tensors, kinds):
    allowed = declaration.facts.float8
    if allowed is None or len(kinds) != 1 or (allowed == "tensors" and len(tensors) != 2):
        return NotImplemented
    if declaration.schema.name == "matmul" and any(a.ndim != 2 for a in tensors):
        return NotImplemented
    kind = kinds.pop()
    if kind not in STORED_WIDE or (allowed == "infinite" and kind is not STORED["float8_e5m2"]):
        return NotImplemented
    wide = [a.to(ALL["float32"]) if isinstance(a, Base) else a for a in args]
    found = declaration.function(*wide)
    found = found.to(kind) if found.dtype is ALL["float32"] else found
    return args[0].copy_(found) if inplace else found


_C.set_stored_handler(compute)
