"""Names in pickles. A class is msadapter.X in the running program and torch.X in a file."""

import _compat_pickle
import importlib
import sys

from .._values.dtype import ALL
from ..alias.submodules import ELSEWHERE
from ..tensor import Tensor
from . import places

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


def is_ours(module) -> bool:
    """Return whether a `__module__` is one of this package. Some classes here have PyTorch's module as theirs."""
    return isinstance(module, str) and module.partition(".")[0] in (ROOT, "torch")


def to_file(module: str) -> str:
    """Return the module name that a file contains for one of this package's modules."""
    if module == ROOT or module.startswith(ROOT + "."):
        return "torch" + module[len(ROOT) :]
    return module


def to_runtime(module: str) -> str:
    """Return this package's module for a module name in a file."""
    if module == "torch" or module.startswith("torch."):
        below = module[len("torch.") :]
        return f"{ROOT}.{ELSEWHERE.get(below, below)}".rstrip(".")
    return module


def py2_to_py3(module: str, name: str):
    """Replace the Python 2 names that pickle protocols up to 2 contain (`__builtin__ set`)."""
    if (module, name) in _compat_pickle.NAME_MAPPING:
        return _compat_pickle.NAME_MAPPING[(module, name)]
    return _compat_pickle.IMPORT_MAPPING.get(module, module), name


def module_of(name: str):
    """Return this package's module for the name of one of PyTorch's. ImportError if there is none."""
    target = to_runtime(name)
    return sys.modules.get(target) or importlib.import_module(target)


def find(module: str, name: str):
    """Return the object that a global in a file names. AttributeError or ImportError if it does not exist."""
    kind = storage_type(module, name)
    if kind is not None:
        return kind
    place, path = places.read(module, name)
    try:
        found = module_of(place)
    except ImportError as err:
        raise ModuleNotFoundError(
            f"the file refers to {module}.{name}, but there is no module {module!r}"
        ) from err
    for part in path.split("."):
        try:
            found = attribute(found, part)
        except AttributeError as err:
            text = f"the file refers to {module}.{name}, which this version does not have"
            raise AttributeError(text) from err
    return found


def is_at(obj, module: str, name: str) -> bool:
    """Return whether a file that names `name` of `module` means `obj`."""
    if storage_type(module, name) is not None:
        return isinstance(obj, type) and obj.__name__ == name and is_ours(obj.__module__)
    try:
        return find(module, name) is obj
    except (ImportError, AttributeError):
        return False


def place_of(obj, name: str | None = None) -> tuple[str, str] | None:
    """Return the (module, qualified name) under which PyTorch finds a class or function of this package.

    Return None for those of other packages. A `name` counts instead of the object's own.
    """
    module = getattr(obj, "__module__", None)
    if not is_ours(module):
        return None
    name = name or getattr(obj, "__qualname__", obj.__name__)
    if "<locals>" in name:  # a function that another function has made and named
        name = obj.__name__
    found = places.written(module, name)
    return next((place for place in found if is_at(obj, *place)), found[0])


def attribute(holder, name: str):
    """Return an attribute of what a file names.

    Methods that PyTorch has in TensorBase are those of Tensor here, also when MindSpore's Tensor has taken the place of its base.
    """
    if isinstance(holder, type) and holder is not object and issubclass(Tensor, holder):
        holder = Tensor
    return getattr(holder, name)
