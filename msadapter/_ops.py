"""torch._ops: the classes of operators, for `isinstance` and annotations."""

from __future__ import annotations

from ._aten import OpOverload, OpOverloadPacket

__all__ = ["OpOverload", "OpOverloadPacket"]
