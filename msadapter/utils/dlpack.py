"""Exchange of tensors by DLPack."""

from ..tensor._dlpack import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
