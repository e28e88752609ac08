"""Names in pickles. A class is msadapter.X in the running program and torch.X in a file."""

import _compat_pickle
import importlib
import sys

from .._values.dtype import ALL

ROOT = __package__.partition(".")[0]

_TYPED_STORAGES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexDoubleStorage": "complex128",
    "ComplexFloatStorage": "complex64",
}
_STORAGE_OF_DTYPE = {dtype: name for name, dtype in _TYPED_STORAGES.items()}
_FROM_TYPE = ("torch._tensor", "_rebuild_from_type_v2")
UNTYPED_STORAGE = ("torch.storage", "UntypedStorage")


class TorchGlobal:
    """A global that is written to a pickle by its name only. There is one object for each name."""

    _known: dict = {}

    def __new__(cls, module: str, name: str):
        key = (module, name)
        if key not in cls._known:
            self = super().__new__(cls)
            self.module, self.name = key
            cls._known[key] = self
        return cls._known[key]

    def __call__(self, *args, **kwargs):
        return find(self.module, self.name)(*args, **kwargs)

    def __repr__(self):
        return f"{self.module}.{self.name}"


class StorageType:
    """The meaning of `torch.FloatStorage` in a persistent id: a dtype, or None for untyped bytes."""

    def __init__(self, name: str, dtype):
        self.name = name
        self.dtype = dtype

    def __repr__(self):
        return f"torch.{self.name}"


def dtype_name(dtype) -> str:
    """Return the name of a dtype, such as 'float32' for torch.float32."""
    return str(dtype).rpartition(".")[2]


def storage_global(dtype) -> TorchGlobal:
    """Return the storage class that stands for a dtype in files, such as torch.FloatStorage.

    It is UntypedStorage for newer dtypes.
    """
    name = _STORAGE_OF_DTYPE.get(dtype_name(dtype))
    return TorchGlobal("torch", name) if name else TorchGlobal(*UNTYPED_STORAGE)


def has_typed_storage(dtype) -> bool:
    return dtype_name(dtype) in _STORAGE_OF_DTYPE


def storage_type(module: str, name: str):
    """Return the StorageType for a global in a file, or None if it is not a storage class."""
    if name == "UntypedStorage" and module in ("torch", "torch.storage"):
        return StorageType(name, None)
    if name == "TypedStorage" and module in ("torch", "torch.storage"):
        return None
    if module in ("torch", "torch.cuda", "torch.npu", "torch.storage") and name in _TYPED_STORAGES:
        return StorageType(name, ALL[_TYPED_STORAGES[name]])
    return None


def to_file(module: str) -> str:
    """Return the module name that a file contains for one of this package's modules."""
    if module == ROOT or module.startswith(ROOT + "."):
        return "torch" + module[len(ROOT) :]
    return module


def to_runtime(module: str) -> str:
    """Return this package's module for a module name in a file."""
    if module == "torch" or module.startswith("torch."):
        return ROOT + module[len("torch") :]
    return module


def py2_to_py3(module: str, name: str):
    """Replace the Python 2 names that pickle protocols up to 2 contain (`__builtin__ set`)."""
    if (module, name) in _compat_pickle.NAME_MAPPING:
        return _compat_pickle.NAME_MAPPING[(module, name)]
    return _compat_pickle.IMPORT_MAPPING.get(module, module), name


def find(module: str, name: str):
    """Return the object that a global in a file names. AttributeError or ImportError if it does not exist."""
    kind = storage_type(module, name)
    if kind is not None:
        return kind
    # PyTorch defines this function in torch._tensor and not in torch._utils
    target = to_runtime("torch._utils" if (module, name) == _FROM_TYPE else module)
    try:
        found = sys.modules.get(target) or importlib.import_module(target)
    except ImportError as err:
        raise ModuleNotFoundError(
            f"the file refers to {module}.{name}, but there is no module {module!r}"
        ) from err
    for part in name.split("."):
        if not hasattr(found, part):
            raise AttributeError(f"the file refers to {module}.{name}, which this version does not have")
        found = getattr(found, part)
    return found
