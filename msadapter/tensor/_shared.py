"""Storages in memory that other processes can map: what `share_memory_()` does.

The memory is an anonymous file (memfd). A child made by fork shares it at once; any other process of the same user maps it from a
descriptor that it is sent, or through `/proc/<process>/fd/<descriptor>` as long as the process that sent it lives. Nothing is left
in a folder.
"""

from __future__ import annotations

import mmap
import os
import weakref

import numpy as np

from .._values.base import _C

_descriptors: dict[int, int] = {}  # by the address of the memory
_received: weakref.WeakValueDictionary = (
    weakref.WeakValueDictionary()
)  # arrays by the device and number of their files


def _forget(address: int, descriptor: int) -> None:
    _descriptors.pop(address, None)
    os.close(descriptor)


def _map(descriptor: int, nbytes: int) -> np.ndarray:
    """The bytes of a file as an array. Deleting the array closes the descriptor."""
    array = np.frombuffer(mmap.mmap(descriptor, nbytes), dtype=np.uint8)
    _descriptors[array.ctypes.data] = descriptor
    weakref.finalize(array, _forget, array.ctypes.data, descriptor).atexit = False
    return array


def is_shared(storage) -> bool:
    """Whether other processes can map the storage's memory. An accelerator's memory always counts as shared, as in PyTorch."""
    return storage.device.type != "cpu" or (storage.nbytes() > 0 and storage.data_ptr() in _descriptors)


def share(storage) -> None:
    """Moves a storage, and with it all its tensors, to memory that other processes can map.

    Raises:
        RuntimeError: the system does not provide such memory.
    """
    if is_shared(storage) or storage.nbytes() == 0:
        return
    try:
        descriptor = os.memfd_create("msadapter")
        os.ftruncate(descriptor, storage.nbytes())
        array = _map(descriptor, storage.nbytes())
    except OSError as err:
        raise RuntimeError(f"unable to share {storage.nbytes()} bytes: {err.strerror} ({err.errno})") from err
    array[:] = storage._numpy()
    _C.move_storage(storage._holder, array.ctypes.data, array)


def descriptor_of(storage) -> int:
    """Return the descriptor of the file that is the memory of a shared storage."""
    return _descriptors[storage.data_ptr()]


def address_of(storage) -> str:
    """Return the path under which other processes open the memory of a shared storage."""
    return f"/proc/{os.getpid()}/fd/{descriptor_of(storage)}"


def opened(path: str) -> int:
    """Return a descriptor of the memory at a path.

    Raises:
        RuntimeError: the process that shares the memory has ended.
    """
    try:
        return os.open(path, os.O_RDWR)
    except OSError as err:
        raise RuntimeError(f"the memory {path} that was sent is gone: {err.strerror} ({err.errno})") from err


def attach(storage, descriptor: int) -> None:
    """Move a new storage onto the memory that another process shares.

    Memory that this process has mapped already is not mapped again.
    """
    status = os.fstat(descriptor)
    key = status.st_dev, status.st_ino
    array = _received.get(key)
    if array is None:
        array = _received[key] = _map(descriptor, storage.nbytes())
    else:
        os.close(descriptor)
    _C.move_storage(storage._holder, array.ctypes.data, array)
