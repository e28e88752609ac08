"""How a storage stands in a file."""


class StorageRef:
    """A storage on its way into a file: the persistent id is made from it."""

    __slots__ = ("untyped", "dtype", "location", "itemsize")

    def __init__(self, untyped, dtype, location: str):
        self.untyped = untyped
        self.dtype = dtype
        self.location = location
        self.itemsize = dtype.itemsize if dtype is not None else 1


def location_tag(device) -> str:
    """'cpu', 'cuda:0', 'npu:1' ...: where a storage was when it was saved."""
    if device.type in ("cpu", "meta"):
        return device.type
    return f"{device.type}:{device.index or 0}"
