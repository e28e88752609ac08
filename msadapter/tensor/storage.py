"""torch.UntypedStorage: the memory of tensors, as bytes."""

from __future__ import annotations

import ctypes
import os
import sys
import weakref

import numpy as np

from .._errors import unsupported
from .._values import dtype as dtypes
from .._values.base import _C, device_of, place
from .._values.device import ACCELERATORS, META_TAG, accelerator
from .._values.device import device as Device
from . import _shared
from ._lent import lent

_living: weakref.WeakValueDictionary[int, UntypedStorage] = weakref.WeakValueDictionary()  # by identity
_DEVICES = ("cpu", "meta", *ACCELERATORS)
_NO_VALUES = "Not available for 'meta' device type"
_NO_DATA = "Cannot copy out of meta tensor; no data!"


def _bytes_of(values) -> np.ndarray:
    """Return the bytes that a sequence of integers gives. RuntimeError for anything else."""
    if not hasattr(values, "__len__") or not hasattr(values, "__getitem__") or hasattr(values, "dtype"):
        raise RuntimeError(
            f"torch.UntypedStorage(): Expected a sequence type, but got {type(values).__name__}"
        )
    for value in values:
        if not isinstance(value, (int, np.integer)):
            raise RuntimeError(
                f"torch.UntypedStorage(): tried to construct a storage from a sequence ({type(values).__name__}), "
                f"but one of the items was of type {type(value).__name__} instead of int"
            )
    return np.array([int(value) & 255 for value in values], dtype=np.uint8)


class UntypedStorage:
    """The bytes of one or several tensors. Two storages are equal if they are the same memory."""

    is_sparse = is_sparse_csr = is_hpu = False
    filename = None

    def __init__(self, size=0, *, device=None, _holder=None):
        if _holder is not None:
            self._holder = _holder
            return
        if device is not None and Device(device).type not in _DEVICES:
            raise RuntimeError(
                f"torch.UntypedStorage(): Storage device not recognized: {Device(device).type}"
            )
        if isinstance(size, int):
            made = _C.raw_empty((size,), None, dtypes.ALL["uint8"])
        else:
            made = UntypedStorage.from_numpy(_bytes_of(size))._holder
        self._holder = made if device is None else place(made, device)

    @staticmethod
    def of(tensor) -> UntypedStorage:
        """Return the storage of a tensor. As long as the object lives, it is the same one for all tensors on this memory."""
        key = _C.storage_id(tensor)
        found = _living.get(key)
        if found is None:
            byte = dtypes.ALL["uint8"]
            found = UntypedStorage(_holder=_C.raw_view(tensor, (_C.storage_nbytes(tensor),), (1,), 0, byte))
            _living[key] = found
        return found

    @staticmethod
    def from_numpy(array) -> UntypedStorage:
        """Return a storage that shares memory with a one-dimensional uint8 array, which is kept alive."""
        holder = _C.from_buffer(array.ctypes.data, array.nbytes, dtypes.ALL["uint8"], (array.nbytes,), array)
        return UntypedStorage(_holder=holder)

    @staticmethod
    def from_file(filename, shared=False, nbytes=0):
        """The first ``nbytes`` bytes of a file, mapped. With ``shared``, writes change the file, which is created or extended.

        Raises:
            RuntimeError: the file does not exist, or is smaller; or the size is negative.
        """
        name = os.fspath(filename)
        if nbytes < 0:
            raise RuntimeError(f"unable to mmap {nbytes} bytes from file <{name}>")
        try:
            have = os.path.getsize(name) if os.path.exists(name) or not shared else 0
            if have < nbytes and not shared:
                raise RuntimeError(
                    f"file <{name}> size <{have}> is smaller than the required mapping size <{nbytes}>"
                )
            if nbytes == 0:
                return UntypedStorage(0)
            mode = "c" if not shared else "r+" if os.path.exists(name) else "w+"
            return UntypedStorage.from_numpy(np.memmap(name, dtype=np.uint8, mode=mode, shape=(nbytes,)))
        except OSError as err:
            raise RuntimeError(f"unable to open file <{name}>: {err.strerror} ({err.errno})") from err

    # For a storage of a file in the other byte order: the width, in bytes, of the numbers that were turned round.
    _turned: int | None = None

    def _check_byte_order(self, dtype) -> None:
        """NotImplementedError unless elements of ``dtype`` have this machine's byte order."""
        if self._turned is not None and self._turned != (
            dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        ):
            raise unsupported(
                "torch.load", f"{dtype} in a file of the other byte order is not supported over this storage"
            )

    def nbytes(self) -> int:
        return _C.storage_nbytes(self._holder)

    size = __len__ = nbytes

    def data_ptr(self) -> int:
        return 0 if self._is_meta() else _C.storage_ptr(self._holder)

    def _is_meta(self) -> bool:
        return _C.device_tag(self._holder) == META_TAG

    @property
    def _cdata(self) -> int:
        return _C.storage_id(self._holder)

    @property
    def device(self) -> Device:
        return device_of(self._holder)

    @property
    def is_cuda(self) -> bool:
        return self.device.type != "cpu"

    def _bytes(self):
        """Return a uint8 tensor that shares memory with the storage, on whichever device it is."""
        return _C.raw_view(self._holder, (self.nbytes(),), (1,), 0, dtypes.ALL["uint8"])

    def _numpy(self):
        """Return a uint8 array that shares memory with the storage, or a copy of an accelerator's memory."""
        if self._is_meta():
            raise NotImplementedError(_NO_VALUES)
        if _C.in_device_memory(self._holder):
            return self.cpu()._numpy()
        n = self.nbytes()
        if n == 0:
            return np.empty(0, np.uint8)
        buffer = (ctypes.c_uint8 * n).from_address(self.data_ptr())
        array = np.frombuffer(buffer, np.uint8)
        buffer._owner = self._holder  # the base of the array keeps the memory alive
        return array

    def _write_back(self, array) -> None:
        """Store what was written into the array from `_numpy`, if that was a copy of an accelerator's memory."""
        if _C.in_device_memory(self._holder):
            self.copy_(UntypedStorage.from_numpy(array))

    def __array__(self, dtype=None, copy=None):
        """Return a numpy array that shares memory with the storage, or a copy of an accelerator's memory."""
        array = self._numpy()
        return array if dtype is None else array.astype(dtype, copy=bool(copy))

    def resize_(self, nbytes: int) -> UntypedStorage:
        """Change the size for all tensors on this storage. The bytes that fit are kept.

        Raises:
            RuntimeError: the memory is shared with other processes, or with a numpy array.
        """
        if not self.resizable():
            raise RuntimeError("Trying to resize storage that is not resizable")
        _C.resize_storage(self._holder, int(nbytes))
        return self

    def copy_(self, source, non_blocking=None) -> UntypedStorage:
        if source._is_meta() and not self._is_meta():
            raise NotImplementedError(_NO_DATA)
        n = 0 if self._is_meta() else min(self.nbytes(), source.nbytes())
        if n:
            byte = dtypes.ALL["uint8"]
            to, given = (_C.raw_view(x._holder, (n,), (1,), 0, byte) for x in (self, source))
            _C.copy_into(to, given)
        return self

    def clone(self) -> UntypedStorage:
        if _C.in_device_memory(self._holder):
            return UntypedStorage(_holder=_C.copied_to(self._bytes(), _C.device_tag(self._holder)))
        return UntypedStorage(self.nbytes(), device=self.device if self._is_meta() else None).copy_(self)

    __copy__ = clone

    def fill_(self, value: int) -> UntypedStorage:
        self[:] = value
        return self

    def tolist(self) -> list[int]:
        return self._numpy().tolist()

    def __getitem__(self, index):
        item = self._numpy()[index]
        return int(item) if np.isscalar(item) else UntypedStorage.from_numpy(np.ascontiguousarray(item))

    def __setitem__(self, index, value):
        if self._is_meta():
            return
        array = self._numpy()
        array[index] = value
        self._write_back(array)

    def __eq__(self, other) -> bool:
        return isinstance(other, UntypedStorage) and self._cdata == other._cdata

    def __hash__(self) -> int:
        return hash(self._cdata)

    def cpu(self) -> UntypedStorage:
        """Return the storage itself if the host can read it, otherwise a copy in the host's memory."""
        if self._is_meta():
            raise NotImplementedError(_NO_DATA)
        if not _C.in_device_memory(self._holder):
            return self
        return UntypedStorage(_holder=_C.copied_to(self._bytes(), 0))

    def cuda(self, device=None, non_blocking=False) -> UntypedStorage:
        """Return the storage itself, or a copy in the accelerator's memory if it has its own."""
        if not _C.has_own_memory() or _C.in_device_memory(self._holder):
            return self
        return UntypedStorage(_holder=place(self._bytes(), accelerator() if device is None else device))

    def is_shared(self) -> bool:
        """Return whether other processes can map this memory; see `share_memory_`."""
        return not self._is_meta() and _shared.is_shared(self)

    def is_pinned(self, device=None) -> bool:
        """Return whether the bytes are in pinned memory of the host."""
        return _C.is_pinned(self._holder)

    def share_memory_(self) -> UntypedStorage:
        """Move the bytes to memory that other processes can map. All tensors on this storage move with it."""
        self._refuse_sharing("_share_fd_")
        _shared.share(self)
        return self

    def _refuse_sharing(self, name: str) -> None:
        if self._is_meta():
            raise RuntimeError(f"{name}: only available on CPU")

    def _share_fd_cpu_(self):
        self._refuse_sharing("_share_fd_")
        raise unsupported("UntypedStorage._share_fd_cpu_")

    def _share_filename_cpu_(self):
        self._refuse_sharing("_share_filename_")
        raise unsupported("UntypedStorage._share_filename_cpu_")

    def _write_file(self, file, is_real_file: bool, save_size: bool, element_size: int) -> None:
        """Write the bytes to a file, with the number of elements in front of them if ``save_size`` is set."""
        content = memoryview(self.cpu()._numpy())
        if save_size:
            file.write((self.nbytes() // element_size).to_bytes(8, "little"))
        file.write(content)

    def byteswap(self, dtype) -> None:
        """Turn the order of the bytes of each number round, in place. The two parts of a complex number count as numbers."""
        size = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        array = self._numpy()
        array[:] = array.reshape(-1, size)[:, ::-1].reshape(-1)
        self._write_back(array)

    def untyped(self) -> UntypedStorage:
        return self

    def resizable(self) -> bool:
        if self._is_meta() or self.device.type != "cpu":
            return True
        return not self.is_shared() and self.data_ptr() not in lent

    def type(self, dtype=None, non_blocking=False):
        if dtype is not None:
            raise unsupported("UntypedStorage.type", "dtype is not supported")
        return "torch.storage.UntypedStorage"

    def new(self) -> UntypedStorage:
        """Return an empty storage on the same device."""
        return UntypedStorage(0, device=None if self.device.type == "cpu" else self.device)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def get_device(self) -> int:
        return -1 if self.device.type == "cpu" else self.device.index

    @staticmethod
    def from_buffer(
        buffer, byte_order=None, count=-1, offset=0, *, dtype, requires_grad=False
    ) -> UntypedStorage:
        """Return a copy of ``count`` elements of a Python buffer, from byte ``offset`` on.

        The bytes are converted from ``byte_order`` to the order of this machine.

        Raises:
            ValueError: the range is outside of the buffer, or the byte order is unknown.
        """
        data = np.frombuffer(buffer, np.uint8)
        size = dtype.itemsize
        if size > 1 and byte_order not in ("big", "little", "native"):
            raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
        if not 0 <= offset <= len(data):
            raise ValueError(
                f"offset must be non-negative and no greater than buffer length ({offset}) , but got {len(data)}"
            )
        if count < 0:
            if (len(data) - offset) % size:
                raise ValueError(f"buffer size ({len(data)}) must be a multiple of element size ({size})")
            count = (len(data) - offset) // size
        if offset + count * size > len(data):
            raise ValueError(
                f"buffer has only {len(data) - offset} elements after offset {offset}, but specified a size of {count}"
            )
        taken = data[offset : offset + count * size].copy()
        if size > 1 and byte_order not in ("native", sys.byteorder):
            part = size // 2 if dtype.is_complex else size
            taken = np.ascontiguousarray(taken.reshape(-1, part)[:, ::-1]).reshape(-1)
        return UntypedStorage.from_numpy(taken)

    def __repr__(self) -> str:
        rows = "...\n" if self._is_meta() else "".join(f" {value}\n" for value in self.tolist())
        return f"{rows}[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"

    def element_size(self) -> int:
        return 1

    def __reduce__(self):
        return _rebuild_storage, (bytes(self._numpy()),)

    def __deepcopy__(self, memo):
        copies = memo.setdefault(
            "torch", {}
        )  # by identity, because tensors on this memory look for the copy too
        if self._cdata not in copies:
            copies[self._cdata] = (self.clone(), self)  # which keeps the identity of this one
        return copies[self._cdata][0]


UntypedStorage.__module__ = "torch.storage"


def _rebuild_storage(content: bytes) -> UntypedStorage:
    return UntypedStorage.from_numpy(np.frombuffer(bytearray(content), np.uint8))
