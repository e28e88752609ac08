"""Exchange of tensors by DLPack."""

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(tensor):
    """A DLPack capsule of a tensor."""
    return tensor.__dlpack__()


def from_dlpack(ext_tensor):
    """A tensor over the memory of a capsule or of an object with __dlpack__."""
    from .._serialization.names import root

    return root().from_dlpack(ext_tensor)
