"""torch.TypedStorage, torch.FloatStorage etc.: storages with a dtype, which older programs use."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import numpy as np

from .._host.warn import warn_once
from .._values import dtype as dtypes
from .._values.base import _C
from ._construct import tensor
from .storage import UntypedStorage

_EXPECTED = (
    "{} received an invalid combination of arguments. Expected one of:\n * no arguments\n * (int size)\n"
    " * (Sequence data)\n * (*, UntypedStorage wrap_storage)\n{}"
)


def warn_of_typed_storage() -> None:
    """Warn the caller of the caller, once in a process, that programs should use UntypedStorage."""
    warn_once(
        "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This "
        "should only matter to you if you are using storages directly: use tensor.untyped_storage() instead of tensor.storage().",
        stacklevel=3,
    )


class TypedStorage:
    """An UntypedStorage seen as elements of one dtype."""

    is_sparse = is_hpu = False
    filename = None

    def __init__(self, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        function = "TypedStorage.__init__"
        if wrap_storage is None:
            warn_of_typed_storage()
            self.dtype = dtype or _C.default_dtype()
            self._untyped_storage = _fresh(function, args, self.dtype, device)
            return
        if args:
            raise _refusal(function, "No positional arguments should be given when using 'wrap_storage'")
        if dtype is None:
            raise _refusal(function, "Argument 'dtype' must be specified")
        if not isinstance(dtype, dtypes.dtype):
            raise _refusal(function, f"Argument 'dtype' must be torch.dtype, not {type(dtype)}", TypeError)
        if device is not None:
            raise _refusal(function, "Argument 'device' should not be specified when 'wrap_storage' is given")
        if not isinstance(wrap_storage, UntypedStorage):
            raise _refusal(
                function,
                f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}",
                TypeError,
            )
        self.dtype, self._untyped_storage = dtype, wrap_storage

    @classmethod
    def from_buffer(cls, *args, dtype=None, device=None, **kwargs):
        """Copy a Python buffer. Arguments: (buffer, byte_order, count=-1, offset=0).

        The byte order may be left out for elements of one byte.
        """
        element = cls.dtype if cls is not TypedStorage else dtype or _C.default_dtype()
        if element.itemsize > 1 and len(args) < 2 and "byte_order" not in kwargs:
            raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
        return TypedStorage(
            wrap_storage=UntypedStorage.from_buffer(*args, dtype=element, **kwargs), dtype=element
        )

    @classmethod
    def from_file(cls, filename, shared=False, size=0):
        """Return ``size`` elements of a file. With ``shared``, writes to the storage change the file."""
        element = cls.dtype if cls is not TypedStorage else _C.default_dtype()
        return TypedStorage(
            wrap_storage=UntypedStorage.from_file(filename, shared, size * element.itemsize), dtype=element
        )

    def untyped(self) -> UntypedStorage:
        return self._untyped_storage

    def nbytes(self) -> int:
        return self._untyped_storage.nbytes()

    def size(self) -> int:
        return self.nbytes() // self.dtype.itemsize

    __len__ = _size = size

    def data_ptr(self) -> int:
        return self._untyped_storage.data_ptr()

    _data_ptr = data_ptr

    @property
    def _cdata(self) -> int:
        return self._untyped_storage._cdata

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    def resize_(self, size: int) -> None:
        """Change the size to ``size`` elements."""
        self._untyped_storage.resize_(size * self.dtype.itemsize)

    def resizable(self) -> bool:
        return self._untyped_storage.resizable()

    def element_size(self) -> int:
        return self.dtype.itemsize

    @property
    def device(self):
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        return self._untyped_storage.is_cuda

    def get_device(self) -> int:
        return self._untyped_storage.get_device()

    def is_shared(self) -> bool:
        return self._untyped_storage.is_shared()

    def is_pinned(self, device=None) -> bool:
        return self._untyped_storage.is_pinned(device)

    def _share_fd_cpu_(self):
        return self._untyped_storage._share_fd_cpu_()

    def _share_filename_cpu_(self):
        return self._untyped_storage._share_filename_cpu_()

    def _write_file(self, file, is_real_file: bool, save_size: bool, element_size: int) -> None:
        self._untyped_storage._write_file(file, is_real_file, save_size, element_size)

    def share_memory_(self) -> TypedStorage:
        self._untyped_storage.share_memory_()
        return self

    def _tensor(self):
        return _C.raw_view(self._untyped_storage._holder, (self.size(),), (1,), 0, self.dtype)

    def _check_values(self) -> None:
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")

    def tolist(self) -> list:
        self._check_values()
        return self._tensor().tolist()

    def __iter__(self):
        return iter(self.tolist())

    def __getitem__(self, index):
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(index, int):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        self._check_values()
        if not -self.size() <= index < self.size():
            raise IndexError(f"index {index} out of range for storage of size {self.size()}")
        return self._tensor()[index].item()

    def __setitem__(self, index, value):
        if not isinstance(index, (int, slice)):
            raise RuntimeError(f"can't index a {type(self)} with {type(index)}")
        if isinstance(value, (TypedStorage, UntypedStorage)):
            raise RuntimeError(f"cannot set item with value type {type(value)}")
        self._tensor()[index] = value

    def fill_(self, value) -> TypedStorage:
        self[:] = value
        return self

    def copy_(self, source, non_blocking=None) -> TypedStorage:
        """Copy the elements of another storage. An UntypedStorage is copied as bytes."""
        if isinstance(source, UntypedStorage):
            self._untyped_storage.copy_(source)
        elif source.device.type == "meta" and self.device.type != "meta":
            raise NotImplementedError("Cannot copy out of meta tensor; no data!")
        else:
            self._tensor().copy_(source._tensor())
        return self

    def clone(self) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.cpu(), dtype=self.dtype)

    def cuda(self, device=None, non_blocking=False) -> TypedStorage:
        return TypedStorage(wrap_storage=self._untyped_storage.cuda(device), dtype=self.dtype)

    def _to(self, dtype) -> TypedStorage:
        return self._tensor().to(dtype, copy=True)._typed_storage()

    def pickle_storage_type(self) -> str:
        """Return the name of the class that stands for this dtype in files."""
        return self.dtype.storage_name

    def type(self, dtype=None, non_blocking=False):
        """Without arguments return the type's name, else convert to a dtype, a storage class or its name."""
        if dtype is None:
            return f"torch.{self.dtype.storage_name}"
        if isinstance(dtype, str):
            names = {f"torch.{d.storage_name}": d for d in dtypes.ALL.values()}
            if dtype not in names:
                raise RuntimeError(f"type '{dtype}' is not recognized")
            return self._to(names[dtype])
        return self._to(dtype if isinstance(dtype, dtypes.dtype) else dtype.dtype)

    def __repr__(self) -> str:
        values = [] if self.device.type == "meta" else self.tolist()
        rows = "...\n" if self.device.type == "meta" else "".join(f" {value}\n" for value in values) or " \n"
        return f"{rows}[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {self.size()}]"

    def __eq__(self, other) -> bool:
        return isinstance(other, TypedStorage) and self._untyped_storage == other._untyped_storage

    def __hash__(self) -> int:
        return hash(self._untyped_storage)

    def __reduce__(self):
        return _rebuild, (self._untyped_storage, self.dtype)

    def _deepcopy(self, memo) -> TypedStorage:
        return copy.deepcopy(self, memo)

    def _get_legacy_storage_class(self) -> type:
        return storage_class(self.dtype)

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = TypedStorage(
                wrap_storage=self._untyped_storage.__deepcopy__(memo), dtype=self.dtype
            )
        return memo[id(self)]


# In PyTorch these methods give a deprecation warning. Programs call the private names to avoid it.
for _name in ("nbytes", "element_size", "resize_", "is_shared", "pickle_storage_type"):
    setattr(TypedStorage, f"_{_name}", getattr(TypedStorage, _name))
TypedStorage._getitem, TypedStorage._setitem = TypedStorage.__getitem__, TypedStorage.__setitem__
TypedStorage._share_memory_ = TypedStorage.share_memory_
TypedStorage._dtype = property(lambda self: self.dtype)


def _rebuild(untyped, dtype) -> TypedStorage:
    return TypedStorage(wrap_storage=untyped, dtype=dtype)


def _conversion(name: str):
    def convert(self):
        return self._to(dtypes.exports()[name])

    convert.__name__ = name
    convert.__doc__ = f"A copy with elements of {name}."
    return convert


for _name in ("bfloat16", "bool", "double", "float", "half", "int", "long", "short"):
    setattr(TypedStorage, _name, _conversion(_name))
for _name, _target in {
    "byte": "uint8",
    "char": "int8",
    "complex_double": "complex128",
    "complex_float": "complex64",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
}.items():
    setattr(TypedStorage, _name, _conversion(_target))
TypedStorage.__module__ = "torch.storage"


def _refusal(function: str, reason: str, kind=RuntimeError) -> Exception:
    return kind(_EXPECTED.format(function, reason))


def _fresh(function: str, args, dtype, device) -> UntypedStorage:
    """Return the storage for the arguments of a constructor: nothing, a number of elements, or a sequence."""
    if len(args) > 1:
        raise _refusal(function, "Too many positional arguments")
    (given,) = args or (0,)
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        return UntypedStorage(int(given) * dtype.itemsize, device=device)
    if isinstance(given, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(given).__name__}'")
    if not isinstance(given, Sequence):
        raise _refusal(function, f"Argument type not recognized: {type(given)}", TypeError)
    return tensor(given, dtype=dtype, device=device).untyped_storage()


class _LegacyStorageMeta(type):
    """Metaclass of torch.FloatStorage etc. isinstance compares the dtype (and device) of a TypedStorage."""

    def __instancecheck__(cls, instance):
        return (
            type(instance) is TypedStorage
            and (cls is _LegacyStorage or instance.dtype is cls.dtype)
            and (cls is _LegacyStorage or cls._device in (None, instance.device.type))
        )


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """Base of the classes that are named after a dtype. Calling one returns a TypedStorage."""

    _device = None

    def __new__(cls, *args, wrap_storage=None, dtype=None, device=None, _internal=False):
        if cls is _LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        function = f"{cls}.__new__"
        for name, value in (("device", device), ("dtype", dtype)):
            if value is not None:
                raise _refusal(function, f"Keyword argument '{name}' cannot be specified")
        if wrap_storage is None:
            untyped = _fresh(function, args, cls.dtype, None)
            if cls._device is not None:
                untyped._holder = _C.placed(untyped._holder, 1)
            return TypedStorage(wrap_storage=untyped, dtype=cls.dtype)
        if args:
            raise _refusal(function, "No positional arguments should be given when using 'wrap_storage'")
        if not isinstance(wrap_storage, UntypedStorage):
            raise _refusal(
                function,
                f"Argument 'wrap_storage' must be UntypedStorage, but got {type(wrap_storage)}",
                TypeError,
            )
        if wrap_storage.device.type != (cls._device or "cpu"):
            raise _refusal(
                function,
                f"Device of 'wrap_storage' must be {cls._device or 'cpu'}, but got {wrap_storage.device.type}",
            )
        return TypedStorage(wrap_storage=wrap_storage, dtype=cls.dtype)


_classes: dict = {}  # the storage classes by dtype


def storage_class(dtype) -> type:
    """Return the storage class of a dtype, such as torch.FloatStorage for torch.float32."""
    if not _classes:
        _classes.update({kind.dtype: kind for kind in legacy_storages("torch").values()})
    return _classes[dtype]


def legacy_storages(module: str, device: str | None = None) -> dict[str, type]:
    """Return torch.FloatStorage etc. by name. ``device`` is the kind of device of their storages."""
    return {
        d.storage_name: _LegacyStorageMeta(
            d.storage_name, (_LegacyStorage,), {"__module__": module, "dtype": d, "_device": device}
        )
        for d in dtypes.ALL.values()
    }
