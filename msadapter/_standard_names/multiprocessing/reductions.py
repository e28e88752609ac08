"""Sends tensors between processes.

With the strategy "file_descriptor", a tensor moves to shared memory when it is sent, and the receiver gets the same memory. With
"file_system", and from the workers of a DataLoader, the receiver gets a copy. Large ones are files in /dev/shm, which the receiver
maps into memory and removes.
"""

import atexit
import glob
import itertools
import mmap
import multiprocessing.resource_sharer  # noqa: F401  (DupFd would import it in a queue's thread, and a fork keep its lock)
import os
from multiprocessing.reduction import DupFd, ForkingPickler

import numpy as np

from .._host import extensions
from .._serialization.names import dtype_name
from .._values.dtype import exports
from .._values.layout import FORMATS
from ..tensor import Tensor, UntypedStorage, _shared

_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else None
_SMALL = 1 << 15
_numbers = itertools.count()
_strategy = "file_descriptor" if hasattr(os, "memfd_create") else "file_system"
_copies = False  # whether this process sends copies whatever the strategy is


def get_strategy() -> str:
    """Return the name of the current way to send tensors."""
    return _strategy


def set_strategy(name: str) -> None:
    """Choose a way to send tensors."""
    global _strategy
    _strategy = name


def send_copies() -> None:
    """Let this process send copies. A worker of a DataLoader gives its batches away, so nobody sees a difference."""
    global _copies
    _copies = True


def _rebuild_from_bytes(data, requires_grad, *layout):
    return _rebuild(np.frombuffer(bytearray(data), dtype=np.uint8), requires_grad, *layout)


def _rebuild_from_file(path, size, requires_grad, *layout):
    handle = os.open(path, os.O_RDWR)
    try:
        mapped = mmap.mmap(handle, size)
    finally:
        os.close(handle)
        os.unlink(path)
    return _rebuild(np.frombuffer(mapped, dtype=np.uint8), requires_grad, *layout)


def _rebuild_shared(memory, nbytes, dtype, offset, shape, stride, requires_grad, is_parameter):
    storage = UntypedStorage(nbytes)
    _shared.attach(storage, _shared.opened(memory) if isinstance(memory, str) else memory.detach())
    tensor = Tensor._from_storage(storage, exports()[dtype], offset, shape, stride)
    if is_parameter:
        return extensions.parameter_class.value(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def _rebuild(array, requires_grad, dtype, shape, device, is_parameter):
    storage = UntypedStorage.from_numpy(array)
    stride, step = [], 1
    for length in reversed(shape):
        stride.insert(0, step)
        step *= max(length, 1)
    tensor = Tensor._from_storage(storage, exports()[dtype], 0, tuple(shape), tuple(stride))
    if device != "cpu":
        tensor = tensor.to(device)
    if is_parameter:
        return extensions.parameter_class.value(tensor, requires_grad)
    if requires_grad:
        tensor.requires_grad_()
    return tensor


def reduce_tensor(tensor):
    """Return (function, arguments) that recreate the tensor in another process."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since "
            "autograd does "
            "not support crossing process boundaries.  If you just want to transfer the data, "
            "call "
            "detach() on the tensor before serializing (e.g., putting it on the queue)."
        )
    storage = tensor.untyped_storage()
    on_host = tensor.device.type == "cpu"
    moves = on_host and _strategy == "file_descriptor" and not _copies and storage.nbytes() > 0
    if moves:
        _shared.share(storage)
    if on_host and storage.is_shared():
        memory = DupFd(_shared.descriptor_of(storage)) if moves else _shared.address_of(storage)
        geometry = tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride())
        kind = tensor.requires_grad, isinstance(tensor, extensions.parameter_class.value)
        return _rebuild_shared, (memory, storage.nbytes(), dtype_name(tensor.dtype), *geometry, *kind)
    compact = tensor.detach().clone(memory_format=FORMATS["contiguous_format"])
    data = compact.untyped_storage()._numpy()[: compact.numel() * compact.element_size()]
    layout = (
        tensor.requires_grad,
        dtype_name(tensor.dtype),
        tuple(tensor.shape),
        str(tensor.device),
        isinstance(tensor, extensions.parameter_class.value),
    )
    if _FOLDER is None or data.nbytes < _SMALL:
        return _rebuild_from_bytes, (data.tobytes(), *layout)
    path = os.path.join(_FOLDER, f"msadapter-{os.getppid()}-{os.getpid()}-{next(_numbers)}")
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as stream:
        stream.write(memoryview(data))
    return _rebuild_from_file, (path, data.nbytes, *layout)


def _remove_left_files():
    """Remove files that this process or its children have sent, but that were not received."""
    if _FOLDER is not None:
        for path in glob.glob(os.path.join(_FOLDER, f"msadapter-{os.getpid()}-*")):
            os.unlink(path)


def init_reductions() -> None:
    """Register tensors with the standard library, so that its queues and pipes can send them."""
    ForkingPickler.register(Tensor, reduce_tensor)
    ForkingPickler.register(extensions.parameter_class.value, reduce_tensor)
    atexit.register(_remove_left_files)
