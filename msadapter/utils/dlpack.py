"""Exchange of tensors by DLPack."""

import ctypes

from ..tensor._construct import from_dlpack as _shared_with

__all__ = ["from_dlpack", "to_dlpack"]

_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.argtypes, _is_valid.restype = (ctypes.py_object, ctypes.c_char_p), ctypes.c_int


class _Given:
    """An object with the methods of the DLPack protocol that returns a given capsule."""

    def __init__(self, capsule):
        self._capsule = capsule

    def __dlpack__(self, **options):
        return self._capsule

    def __dlpack_device__(self):
        return 1, 0  # kDLCPU: capsules of other devices are not made here


def to_dlpack(tensor):
    """Return a DLPack capsule that shares the tensor's memory. It can be consumed once."""
    return tensor.detach().__dlpack__()


def from_dlpack(ext_tensor):
    """Return a tensor that shares memory with a capsule, or with an object that has __dlpack__.

    Raises:
        RuntimeError: the capsule was consumed before.
    """
    if type(ext_tensor).__name__ == "PyCapsule":
        if not _is_valid(ext_tensor, b"dltensor"):
            raise RuntimeError(
                "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you "
                "might have already constructed a tensor from it once."
            )
        ext_tensor = _Given(ext_tensor)
    return _shared_with(ext_tensor)
