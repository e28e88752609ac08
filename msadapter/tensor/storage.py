"""torch.UntypedStorage and the typed storages of older files."""
from __future__ import annotations

import ctypes

import numpy as np

from . import dtype as dtypes
from ._base import _C, device_of
from .device import device as Device


class UntypedStorage:
    """The bytes behind one or several tensors. Equal when they are the same memory."""

    def __init__(self, size=0, *, device=None, _holder=None):
        if _holder is not None:
            self._holder = _holder
        elif isinstance(size, int):
            self._holder = _C.raw_empty((size,), None, dtypes.ALL["uint8"])
        else:
            self._holder = UntypedStorage.from_numpy(np.array(list(size), dtype=np.uint8))._holder

    @staticmethod
    def from_numpy(array) -> UntypedStorage:
        """Zero-copy storage over a one-dimensional uint8 array, which is kept alive."""
        holder = _C.from_buffer(array.ctypes.data, array.nbytes, dtypes.ALL["uint8"], (array.nbytes,), array)
        return UntypedStorage(_holder=holder)

    @staticmethod
    def from_file(filename, shared=False, nbytes=0):
        mode = "r+" if shared else "c"
        return UntypedStorage.from_numpy(np.memmap(filename, dtype=np.uint8, mode=mode, shape=(nbytes,)))

    def nbytes(self) -> int:
        return _C.storage_nbytes(self._holder)

    size = __len__ = nbytes

    def data_ptr(self) -> int:
        return _C.storage_ptr(self._holder)

    @property
    def _cdata(self) -> int:
        return _C.storage_id(self._holder)

    @property
    def device(self) -> Device:
        return device_of(self._holder)

    @property
    def is_cuda(self) -> bool:
        return self.device.type != "cpu"

    def _numpy(self):
        n = self.nbytes()
        if n == 0:
            return np.empty(0, np.uint8)
        buffer = (ctypes.c_uint8 * n).from_address(self.data_ptr())
        array = np.frombuffer(buffer, np.uint8)
        buffer._owner = self._holder  # the array's base keeps the memory alive
        return array

    def __array__(self, dtype=None, copy=None):
        """The same bytes as a numpy array."""
        array = self._numpy()
        return array if dtype is None else array.astype(dtype, copy=bool(copy))

    def resize_(self, nbytes: int) -> UntypedStorage:
        """Changes the size for every tensor on it; the common part of the content stays."""
        _C.resize_storage(self._holder, int(nbytes))
        return self

    def copy_(self, source, non_blocking=None) -> UntypedStorage:
        n = min(self.nbytes(), source.nbytes())
        self._numpy()[:n] = source._numpy()[:n]
        return self

    def clone(self) -> UntypedStorage:
        return UntypedStorage(self.nbytes()).copy_(self)

    def fill_(self, value: int) -> UntypedStorage:
        self._numpy()[:] = value
        return self

    def tolist(self) -> list[int]:
        return self._numpy().tolist()

    def __getitem__(self, index):
        item = self._numpy()[index]
        return int(item) if np.isscalar(item) else UntypedStorage.from_numpy(np.ascontiguousarray(item))

    def __setitem__(self, index, value):
        self._numpy()[index] = value

    def __eq__(self, other) -> bool:
        return isinstance(other, UntypedStorage) and self._cdata == other._cdata

    def __hash__(self) -> int:
        return hash(self._cdata)

    def cpu(self) -> UntypedStorage:
        return self

    def cuda(self, *args, **kwargs) -> UntypedStorage:
        return self

    def is_shared(self) -> bool:
        return False

    def is_pinned(self, device=None) -> bool:
        return False

    def share_memory_(self) -> UntypedStorage:
        return self

    def untyped(self) -> UntypedStorage:
        return self

    def element_size(self) -> int:
        return 1

    def __reduce__(self):
        return _rebuild_storage, (bytes(self._numpy()),)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = self.clone()
        return memo[id(self)]


UntypedStorage.__module__ = "torch.storage"


def _rebuild_storage(content: bytes) -> UntypedStorage:
    return UntypedStorage.from_numpy(np.frombuffer(bytearray(content), np.uint8))


class TypedStorage:
    """Elements of one type over an UntypedStorage (older interface)."""

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        self.dtype = dtype or _C.default_dtype()
        if wrap_storage is not None:
            self._untyped_storage = wrap_storage
        else:
            count = args[0] if args and isinstance(args[0], int) else 0
            self._untyped_storage = UntypedStorage(count * self.dtype.itemsize)

    def untyped(self) -> UntypedStorage:
        return self._untyped_storage

    def nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def size(self) -> int:
        return self.nbytes() // self.dtype.itemsize

    __len__ = _size = size

    def data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    def resize_(self, size: int) -> TypedStorage:
        self._untyped_storage.resize_(size * self.dtype.itemsize)
        return self

    def element_size(self) -> int:
        return self.dtype.itemsize

    @property
    def device(self):
        return self._untyped_storage.device

    def _tensor(self):
        return _C.raw_view(self._untyped_storage._holder, (self.size(),), (1,), 0, self.dtype)

    def tolist(self) -> list:
        return self._tensor().tolist()

    def __getitem__(self, index):
        item = self._tensor()[index]
        return item.item() if isinstance(index, int) else item

    def __setitem__(self, index, value):
        self._tensor()[index] = value

    def fill_(self, value):
        self._tensor().fill_(value)
        return self

    def copy_(self, source, non_blocking=None):
        self._tensor().copy_(source._tensor())
        return self

    def _data_ptr(self) -> int:
        return self.data_ptr()

    def __eq__(self, other) -> bool:
        return isinstance(other, TypedStorage) and self._untyped_storage == other._untyped_storage

    def __hash__(self) -> int:
        return hash(self._untyped_storage)


TypedStorage.__module__ = "torch.storage"
