"""Sends tensors between processes as files in /dev/shm, which the receiver maps into memory and removes."""

import atexit
import glob
import itertools
import mmap
import os
from multiprocessing.reduction import ForkingPickler

import numpy as np

_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else None
_SMALL = 1 << 15
_numbers = itertools.count()


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


def _rebuild_shared(path, nbytes, dtype, offset, shape, stride, requires_grad, is_parameter):
    from .._serialization.names import root
    from ..tensor import _shared

    torch = root()
    storage = torch.UntypedStorage(nbytes)
    _shared.attach(storage, path)
    tensor = torch.Tensor._from_storage(storage, getattr(torch, dtype), offset, shape, stride)
    if is_parameter:
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def _rebuild(array, requires_grad, dtype, shape, device, is_parameter):
    from .._serialization.names import root

    torch = root()
    storage = torch.UntypedStorage.from_numpy(array)
    stride, step = [], 1
    for length in reversed(shape):
        stride.insert(0, step)
        step *= max(length, 1)
    tensor = torch.Tensor._from_storage(storage, getattr(torch, dtype), 0, tuple(shape), tuple(stride))
    if device != "cpu":
        tensor = tensor.to(device)
    if is_parameter:
        return torch.nn.Parameter(tensor, requires_grad)
    if requires_grad:
        tensor.requires_grad_()
    return tensor


def reduce_tensor(tensor):
    """Return (function, arguments) that recreate the tensor in another process.

    A tensor in shared memory arrives as the same memory, any other as a copy.
    """
    from .._serialization.names import dtype_name, root
    from ..tensor import _shared

    torch = root()
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since "
            "autograd does "
            "not support crossing process boundaries.  If you just want to transfer the data, "
            "call "
            "detach() on the tensor before serializing (e.g., putting it on the queue)."
        )
    storage = tensor.untyped_storage()
    if tensor.device.type == "cpu" and storage.is_shared():
        geometry = tensor.storage_offset(), tuple(tensor.shape), tuple(tensor.stride())
        kind = tensor.requires_grad, isinstance(tensor, torch.nn.Parameter)
        return _rebuild_shared, (*_shared.address_of(storage), dtype_name(tensor.dtype), *geometry, *kind)
    compact = tensor.detach().clone(memory_format=torch.contiguous_format)
    data = compact.untyped_storage()._numpy()[: compact.numel() * compact.element_size()]
    layout = (
        tensor.requires_grad,
        dtype_name(tensor.dtype),
        tuple(tensor.shape),
        str(tensor.device),
        isinstance(tensor, torch.nn.Parameter),
    )
    if _FOLDER is None or data.nbytes < _SMALL:
        return _rebuild_from_bytes, (data.tobytes(), *layout)
    path = os.path.join(_FOLDER, f"msadapter-{os.getppid()}-{os.getpid()}-{next(_numbers)}")
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as stream:
        stream.write(memoryview(data))
    return _rebuild_from_file, (path, data.nbytes, *layout)


def _remove_left_files():
    """Remove files that this process or its children have sent, but that nobody has received."""
    if _FOLDER is not None:
        for path in glob.glob(os.path.join(_FOLDER, f"msadapter-{os.getpid()}-*")):
            os.unlink(path)


def init_reductions() -> None:
    """Register tensors with the standard library, so that its queues and pipes can send them."""
    from .._serialization.names import root

    torch = root()
    ForkingPickler.register(torch.Tensor, reduce_tensor)
    ForkingPickler.register(torch.nn.Parameter, reduce_tensor)
    atexit.register(_remove_left_files)
