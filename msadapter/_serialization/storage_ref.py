"""The description of a storage in a file."""

import pickle

from .guarded import described
from .names import StorageType


class StorageRef:
    """A storage that is being saved. The persistent id is made from this object."""

    __slots__ = ("untyped", "dtype", "location", "itemsize")

    def __init__(self, untyped, dtype, location: str):
        self.untyped = untyped
        self.dtype = dtype
        self.location = location
        self.itemsize = dtype.itemsize if dtype is not None else 1


def location_tag(device) -> str:
    """Return the device of a storage at the time of saving: 'cpu', 'cuda:0', 'npu:1', ..."""
    if device.type in ("cpu", "meta"):
        return device.type
    return f"{device.type}:{device.index or 0}"


def storage_record(pid, length: int):
    """Return (StorageType, key, location, number of elements) of a persistent id.

    This is a tuple of `length` entries that starts with "storage". Anything else raises
    pickle.UnpicklingError, also a negative number. Whether the file contains that many elements is checked
    when they are read.
    """
    if type(pid) is not tuple or len(pid) != length or _text(pid[0]) != "storage":
        raise pickle.UnpicklingError(
            f"Unknown typename for persistent_load, expected 'storage' but got {described(pid[0] if pid else pid)}"
            if type(pid) is tuple
            else f"a persistent id is a tuple, but got {described(pid)}"
        )
    kind, key, location, count = pid[1], _text(pid[2]), _text(pid[3]), pid[4]
    if type(kind) is not StorageType:
        raise pickle.UnpicklingError(f"a storage is of a storage class, not of {described(kind)}")
    if type(key) is not str or type(location) is not str:
        raise pickle.UnpicklingError("key and location of a storage are text")
    if type(count) is not int or not 0 <= count < 1 << 60:
        raise pickle.UnpicklingError(f"storage {key[:100]!r} is announced with a size that no storage has")
    return kind, key, location, count


def _text(value):
    return value.decode() if isinstance(value, bytes) else value
