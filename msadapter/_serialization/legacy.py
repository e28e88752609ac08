"""The stream format of torch.save before version 1.6 (or with _use_new_zipfile_serialization=False).

It consists of five pickles (magic number, protocol version, system, object, storage keys) and then the
storages in the order of the keys: an int64 element count and the raw bytes of each.
"""

import pickle
import struct
import sys

import numpy as np

from .._errors import unsupported
from ..tensor import UntypedStorage
from .pickler import SaveContext, make_pickler
from .storage_ref import _text, storage_record
from .zip_reader import _read_into

MAGIC_NUMBER = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
_SYSTEM = {
    "protocol_version": PROTOCOL_VERSION,
    "little_endian": True,
    "type_sizes": {"short": 2, "int": 4, "long": 4},
}


class LegacyContext(SaveContext):
    """Persistent ids of the legacy format. They have one more field, and each storage has a single dtype."""

    def __init__(self):
        super().__init__()
        self.itemsizes = {}
        self._types = {}

    def persistent_id(self, obj):
        pid = super().persistent_id(obj)
        if pid is None:
            return None
        _, typed, key, location, count = pid
        if self._types.setdefault(key, typed) is not typed:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types"
            )
        self.itemsizes[key] = self.storages[key].nbytes() // count if count else 1
        return ("storage", typed, key, location, count, None)


def save(obj, stream, pickle_module, protocol) -> None:
    """Write `obj` in the legacy format."""
    if sys.byteorder != "little":
        raise unsupported("torch.save", "the legacy format on a big endian machine is not supported")
    for header in (MAGIC_NUMBER, PROTOCOL_VERSION, _SYSTEM):
        pickle.dump(header, stream, protocol=protocol)
    context = LegacyContext()
    make_pickler(stream, pickle_module, protocol, context).dump(obj)
    keys = sorted(context.storages)
    pickle.dump(keys, stream, protocol=protocol)
    for key in keys:
        storage = context.storages[key]
        stream.write(struct.pack("<q", storage.nbytes() // context.itemsizes[key]))
        stream.write(memoryview(storage._numpy()))


def load(stream, file: str, make_unpickler, wrap, place):
    """Read the legacy format.

    make_unpickler(stream, persistent_load) returns an object with load(). wrap(untyped, dtype) returns the
    storage that the rebuilding functions get. place(untyped, location) moves a storage to its device.
    """
    # key -> (buffer, itemsize, wrapped); the buffers are filled after the object's pickle has been read
    storages = {}
    start = stream.tell()
    room = stream.seek(0, 2) - start  # the largest number of bytes that the storages can have
    stream.seek(start)

    def persistent_load(pid):
        nonlocal room
        if type(pid) is tuple and pid and _text(pid[0]) == "module":
            return pid[1]
        kind, key, location, count = storage_record(pid, 6)
        if pid[5] is not None:
            raise unsupported("torch.load", "storage views of files older than PyTorch 0.4 are not supported")
        itemsize = kind.dtype.itemsize if kind.dtype is not None else 1
        if key not in storages:
            room -= count * itemsize
            if room < 0:  # checked before the memory is allocated
                raise RuntimeError(f"storage has wrong byte size: {file} is truncated or corrupted")
            buffer = np.zeros(count * itemsize, dtype=np.uint8)
            untyped = place(UntypedStorage.from_numpy(buffer), location)
            storages[key] = (buffer, itemsize, untyped)
        return wrap(storages[key][2], kind.dtype)

    def next_pickle(what):
        try:
            return make_unpickler(stream, persistent_load).load()
        except EOFError as err:
            raise EOFError(f"Ran out of input: {file} ends inside {what}; the file is truncated") from err

    def is_checkpoint():
        try:
            return next_pickle("the magic number") == MAGIC_NUMBER
        except (
            pickle.UnpicklingError,
            ValueError,
            LookupError,
            AttributeError,
            TypeError,
            ImportError,
        ) as err:
            raise pickle.UnpicklingError(f"{file} is neither a zip nor a legacy checkpoint: {err}") from err

    if not is_checkpoint():
        raise RuntimeError(f"Invalid magic number; corrupt file? {file}")
    version = next_pickle("the protocol version")
    if version != PROTOCOL_VERSION:
        raise RuntimeError(f"Invalid protocol version: {version} ({file})")
    next_pickle("the system information")
    result = next_pickle("the object")
    waiting = dict(storages)
    for key in map(_text, _list_of(next_pickle("the list of storages"))):
        if type(key) is not str or key not in waiting:
            raise RuntimeError(f"{file} is corrupted: its list of storages does not fit its contents")
        _fill(stream, file, *waiting.pop(key))
    if waiting:
        raise RuntimeError(f"{file} is corrupted: it lacks the data of {len(waiting)} storages")
    return result


def _list_of(keys) -> list:
    return keys if type(keys) is list else []


def _fill(stream, file, buffer, itemsize, storage):
    count = stream.read(8)
    if len(count) != 8 or struct.unpack("<q", count)[0] * itemsize != buffer.size:
        raise RuntimeError(f"storage has wrong byte size: {file} is truncated or corrupted")
    target = buffer if str(storage.device) == "meta" else storage._numpy()
    if _read_into(stream, target) != buffer.size:
        raise RuntimeError(f"unexpected end of file: {file} is truncated")
    if target is not buffer:
        storage._write_back(target)
