"""Pickling under PyTorch's names.

Tensors become storages and calls of torch._utils, and msadapter.X becomes torch.X.
"""

import pickle
import types

from .._host import extensions
from ..ops._declare import OPERATOR_TYPES, place_of
from ..ops._generator import Generator
from ..tensor import Size, Tensor, device, dtype, layout, memory_format
from . import names
from .names import TorchGlobal
from .reducing import reduce_tensor
from .storage_ref import StorageRef, location_tag


class SaveContext:
    """The storages of one file, in the order in which they were found."""

    def __init__(self):
        self.storages = {}  # key -> UntypedStorage
        self._keys = {}  # identity -> key
        self._dtypes = {}

    def persistent_id(self, obj):
        if type(obj) is not StorageRef:
            obj = as_storage_ref(obj)
            if obj is None:
                return None
        identity = obj.untyped._cdata
        key = self._keys.setdefault(identity, str(len(self._keys)))
        self.storages[key] = obj.untyped
        # the zip format may contain one storage under two dtypes, because its record holds plain bytes
        typed = (
            names.storage_global(obj.dtype) if obj.dtype is not None else TorchGlobal(*names.UNTYPED_STORAGE)
        )
        itemsize = 1 if typed is TorchGlobal(*names.UNTYPED_STORAGE) else obj.itemsize
        return ("storage", typed, key, obj.location, obj.untyped.nbytes() // itemsize)


def as_storage_ref(obj):
    """Return a StorageRef for a storage that the user saves directly, else None."""
    name = type(obj).__name__
    if name == "UntypedStorage":
        return StorageRef(obj, None, location_tag(_device_of(obj)))
    if name.endswith("Storage") and hasattr(obj, "_untyped_storage"):
        return StorageRef(obj._untyped_storage, obj.dtype, location_tag(_device_of(obj)))
    return None


def _device_of(storage):
    return device(storage.device)


def _method_of_tensor(function) -> str | None:
    """Return the name under which torch.Tensor has this function as a method, or None if it has not."""
    if type(function) is not types.FunctionType or not names.is_ours(function.__module__):
        return None
    for name in (function.__name__, *vars(Tensor)):
        if getattr(Tensor, name, None) is function:
            return name
    return None


class TorchReduce:
    """A `reducer_override` that defines how tensors and torch's small objects are written."""

    def __init__(self):
        parameter = extensions.parameter_class.value
        self.tensor_class = Tensor
        self._plain = {cls.__reduce_ex__ for cls in (Tensor, parameter)}
        self._named = {dtype: "torch", memory_format: "torch"}
        self._size, self._device, self._layout = Size, device, layout
        self._classes = {
            Tensor: ("torch", "Tensor"),
            parameter: ("torch.nn.parameter", "Parameter"),
            Size: ("torch", "Size"),
            device: ("torch", "device"),
            dtype: ("torch", "dtype"),
            Generator: ("torch._C", "Generator"),
        }

    def __call__(self, obj):
        kind = type(obj)
        if kind in self._named or kind is TorchGlobal:
            return str(obj).rpartition(".")[2]
        if kind in OPERATOR_TYPES:
            space, name = place_of(obj)
            return (getattr, (self.tensor_class, name)) if space == "Tensor" else name
        if kind is self._device:
            index = () if obj.index is None else (obj.index,)
            return TorchGlobal("torch", "device"), (obj.type, *index)
        if kind is self._size:
            return TorchGlobal("torch", "Size"), (tuple(obj),)
        if kind is self._layout:
            return TorchGlobal("torch.serialization", "_get_layout"), (str(obj),)
        method = _method_of_tensor(obj)
        if method is not None:
            return getattr, (self.tensor_class, method)
        if isinstance(obj, self.tensor_class) and (
            kind.__reduce_ex__ in self._plain or obj.layout._name != "strided" or obj.is_nested
        ):
            return reduce_tensor(obj)
        return NotImplemented

    def is_known(self, obj) -> bool:
        return type(obj) in self._named or (isinstance(obj, type) and obj in self._classes)

    def global_name(self, obj, name):
        """Return the (module, name) in the file for a class or function of this package; None leaves it to
        pickle.
        """
        if type(obj) is TorchGlobal:
            return obj.module, obj.name
        if type(obj) in self._named:
            return self._named[type(obj)], name
        if type(obj) in OPERATOR_TYPES:
            space, name = place_of(obj)
            return "torch" if space == "torch" else f"torch.{space}", name
        if isinstance(obj, type) and obj in self._classes:
            return self._classes[obj]
        return names.place_of(obj, name)


class TorchNames:
    """A mixin for the pickler in Python of the standard library.

    It writes PyTorch's names for this package.
    """

    _context: SaveContext
    _torch: TorchReduce

    def persistent_id(self, obj):
        return self._context.persistent_id(obj)

    def reducer_override(self, obj):
        return self._torch(obj)

    def save_global(self, obj, name=None):
        found = self._torch.global_name(obj, name)
        if found is None:
            super().save_global(obj, name)
            return
        module, qualname = found
        self._check_reachable(obj, module, qualname)
        if self.proto >= 4:
            self.save(module)
            self.save(qualname)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{qualname}\n".encode())
        self.memoize(obj)

    def _check_reachable(self, obj, module, qualname):
        if type(obj) is TorchGlobal or self._torch.is_known(obj):
            return
        if not names.is_at(obj, module, qualname):
            raise pickle.PicklingError(f"Can't pickle {obj!r}: it's not found as {module}.{qualname}")
        if self.proto < 4 and "." in qualname:
            raise pickle.PicklingError(f"Can't pickle {obj!r}: a nested class needs pickle_protocol=4")


class TorchPickler(TorchNames, pickle._Pickler):
    """The pickler of torch.save."""

    # written out, because dill, which MindSpore imports, changes pickle._Pickler.dispatch
    dispatch = {
        type(None): pickle._Pickler.save_none,
        bool: pickle._Pickler.save_bool,
        int: pickle._Pickler.save_long,
        float: pickle._Pickler.save_float,
        bytes: pickle._Pickler.save_bytes,
        bytearray: pickle._Pickler.save_bytearray,
        pickle.PickleBuffer: pickle._Pickler.save_picklebuffer,
        str: pickle._Pickler.save_str,
        tuple: pickle._Pickler.save_tuple,
        list: pickle._Pickler.save_list,
        dict: pickle._Pickler.save_dict,
        set: pickle._Pickler.save_set,
        frozenset: pickle._Pickler.save_frozenset,
        type: pickle._Pickler.save_type,
        types.FunctionType: TorchNames.save_global,
    }


def make_pickler(stream, pickle_module, protocol, context: SaveContext):
    """Return a pickler for one file.

    Another pickle_module (dill, cloudpickle) keeps its rules for functions.
    """
    base = pickle_module.Pickler
    if pickle_module is pickle:
        kind = TorchPickler
    elif issubclass(base, pickle._Pickler):
        kind = type("TorchForeignPickler", (TorchNames, base), {})
    else:
        kind = _with_c_pickler(base)
    pickler = kind(stream, protocol)
    pickler._context, pickler._torch = context, TorchReduce()
    return pickler


def _with_c_pickler(base):
    """Return a subclass of a pickler in C.

    Such a pickler cannot rename globals, so they are written as calls that look them up.
    """

    class TorchForeignPickler(base):
        def persistent_id(self, obj):
            return self._context.persistent_id(obj)

        def reducer_override(self, obj):
            if isinstance(obj, TorchGlobal):
                return names.find, (obj.module, obj.name)
            if isinstance(obj, self._torch.tensor_class):
                return self._torch(obj)
            inherited = getattr(super(), "reducer_override", None)
            return inherited(obj) if inherited is not None else NotImplemented

    return TorchForeignPickler
