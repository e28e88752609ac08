"""Names inside pickles: ours while running (msadapter.X), PyTorch's in a file (torch.X)."""

import _compat_pickle
import importlib
import sys

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
    """A global that is written into a pickle by name only (one object for each name)."""

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
    """What `torch.FloatStorage` stands for inside a persistent id: a dtype (None: untyped bytes)."""

    def __init__(self, name: str, dtype):
        self.name = name
        self.dtype = dtype

    def __repr__(self):
        return f"torch.{self.name}"


def root():
    """The torch namespace (this package), wherever the alias has put it."""
    return sys.modules.get(ROOT) or importlib.import_module(ROOT)


def dtype_name(dtype) -> str:
    """'float32' for torch.float32."""
    return str(dtype).rpartition(".")[2]


def storage_global(dtype) -> TorchGlobal:
    """The storage class by which files name a dtype: torch.FloatStorage, or UntypedStorage for the newer
    dtypes."""
    name = _STORAGE_OF_DTYPE.get(dtype_name(dtype))
    return TorchGlobal("torch", name) if name else TorchGlobal(*UNTYPED_STORAGE)


def has_typed_storage(dtype) -> bool:
    return dtype_name(dtype) in _STORAGE_OF_DTYPE


def storage_type(module: str, name: str):
    """StorageType for a global of a file, or None if the global is not a storage class."""
    if name == "UntypedStorage" and module in ("torch", "torch.storage"):
        return StorageType(name, None)
    if name == "TypedStorage" and module in ("torch", "torch.storage"):
        return None
    if module in ("torch", "torch.cuda", "torch.npu", "torch.storage") and name in _TYPED_STORAGES:
        return StorageType(name, getattr(root(), _TYPED_STORAGES[name]))
    return None


def to_file(module: str) -> str:
    """The module name that a file carries for one of our modules."""
    if module == ROOT or module.startswith(ROOT + "."):
        return "torch" + module[len(ROOT) :]
    return module


def to_runtime(module: str) -> str:
    """The module of ours that answers for a module name of a file."""
    if module == "torch" or module.startswith("torch."):
        return ROOT + module[len("torch") :]
    return module


def py2_to_py3(module: str, name: str):
    """Undo the Python 2 names that pickle protocols up to 2 carry (`__builtin__ set`)."""
    if (module, name) in _compat_pickle.NAME_MAPPING:
        return _compat_pickle.NAME_MAPPING[(module, name)]
    return _compat_pickle.IMPORT_MAPPING.get(module, module), name


def find(module: str, name: str):
    """The object that a file's global names; AttributeError or ImportError says what is missing."""
    kind = storage_type(module, name)
    if kind is not None:
        return kind
    # PyTorch keeps this one rebuilder beside its Tensor
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
