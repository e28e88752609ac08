"""The allow-list of the restricted unpickler: PyTorch's default list, and what the user adds."""

import pickletools
import sys
from collections import Counter, OrderedDict

from .._host import extensions
from .._values.dtype import exports
from ..tensor import Size, Tensor, device
from . import guarded, names

MISSING = object()

_REBUILDERS = (
    "_rebuild_tensor",
    "_rebuild_tensor_v2",
    "_rebuild_tensor_v3",
    "_rebuild_parameter",
    "_rebuild_parameter_with_state",
    "_rebuild_meta_tensor_no_storage",
    "_rebuild_device_tensor_from_cpu_tensor",
    "_rebuild_device_tensor_from_numpy",
    "_rebuild_qtensor",
    "_rebuild_sparse_tensor",
    "_rebuild_nested_tensor",
    "_rebuild_wrapper_subclass",
)
_PLAIN = {
    "collections.OrderedDict": OrderedDict,
    "collections.Counter": Counter,
    "builtins.bytearray": bytearray,
    "builtins.set": set,
    "builtins.complex": complex,
}
_user: dict = {}


_NESTED = "torch.nested._internal.nested_tensor"  # PyTorch allows these two of its names
_NESTED_NAMES = ("NestedTensor", "_rebuild_njt")


def _of_nested(name: str):
    # here: few files have nested tensors
    from ..nested._internal import nested_tensor

    return getattr(nested_tensor, name)


def _functions() -> list:
    """Return the functions that _rebuild_from_type_v2 may call: those that return a tensor to a file anyway."""
    return [*map(guarded.rebuilder, _REBUILDERS), *_nested("_rebuild_njt"), *_user.values()]


def _classes() -> list:
    return [Tensor, extensions.parameter_class.value, *_nested("NestedTensor"), *_user.values()]


def _nested(name: str) -> list:
    """Return an object of the module of nested tensors, if a file has asked for that module."""
    return [_of_nested(name)] if f"{__package__.partition('.')[0]}.nested" in sys.modules else []


_rebuild_from_type_v2 = guarded.rebuild_from_type(_functions, _classes)


def _torch_globals() -> dict:
    return {
        "torch.Tensor": Tensor,
        "torch.Size": Size,
        "torch.device": device,
        "torch.nn.parameter.Parameter": extensions.parameter_class.value,
        **{str(dtype): dtype for dtype in exports().values()},
    }


_torch_cache: dict = {}


def _default(module: str, name: str):
    full = f"{module}.{name}"
    if full in _PLAIN:
        return _PLAIN[full]
    if full == "_codecs.encode":
        return guarded.latin1
    if module == "torch._utils" and name in _REBUILDERS:
        return guarded.rebuilder(name)
    if full == "torch._tensor._rebuild_from_type_v2":
        return _rebuild_from_type_v2
    if full == "torch.serialization._get_layout":
        return guarded.get_layout
    if module == _NESTED and name in _NESTED_NAMES:
        return _of_nested(name)
    if module.startswith("torch"):
        kind = names.storage_type(module, name)
        if kind is not None:
            return kind
        if not _torch_cache:
            _torch_cache.update(_torch_globals())
        return _torch_cache.get(full, MISSING)
    return MISSING


def find(module: str, name: str):
    """Return the allowed object called module.name, or MISSING."""
    full = f"{module}.{name}"
    if full in _user:
        return _user[full]
    return _default(module, name)


def is_user(module: str, name: str) -> bool:
    return f"{module}.{name}" in _user


def is_tensor(obj) -> bool:
    return isinstance(obj, Tensor)


def _keys(entry) -> list[tuple]:
    """Return pairs (full name in files, object) of an entry: an object, or a pair (object, full name)."""
    if isinstance(entry, tuple):
        if len(entry) != 2:
            raise ValueError(
                "Expected tuple of length 2 (global, str of callable full path), but got tuple "
                "of "
                f"length: {len(entry)}"
            )
        if not isinstance(entry[1], str):
            raise TypeError(
                f"Expected second item in tuple to be str of callable full path, but got: {type(entry[1])}"
            )
        return [(entry[1], entry[0])]
    own = names.to_file(entry.__module__), entry.__qualname__
    # Files name what this package defines by its place in PyTorch. Files of earlier versions name its own module.
    return [(".".join(place), entry) for place in {own, names.place_of(entry, entry.__qualname__) or own}]


def add_safe_globals(entries) -> None:
    """Allow these functions and classes in weights_only loads.

    An entry is an object or a pair (object, "full.name").
    """
    _user.update(pair for entry in entries for pair in _keys(entry))


def get_safe_globals() -> list:
    """Return what add_safe_globals has allowed so far."""
    return list(dict.fromkeys(_user.values()))


def clear_safe_globals() -> None:
    """Remove everything that add_safe_globals allowed."""
    _user.clear()


class safe_globals:
    """Allows functions and classes inside a ``with`` block, like add_safe_globals."""

    def __init__(self, entries):
        self._entries = list(entries)

    def __enter__(self):
        self._before = dict(_user)
        add_safe_globals(self._entries)

    def __exit__(self, *exc):
        _user.clear()
        _user.update(self._before)


def unsafe_globals(pickled: bytes) -> list:
    """Return the full names in a pickle that neither the default list nor the user allows.

    Runs nothing of it.
    """
    found, texts, memo, last = [], [], {}, None
    for opcode, arg, _ in pickletools.genops(pickled):
        code = opcode.name
        if "UNICODE" in code:
            texts.append(arg)
            last = arg
        elif code in ("BINGET", "LONG_BINGET", "GET"):
            texts.append(memo.get(int(arg)))
        elif code == "MEMOIZE":
            memo[len(memo)] = last
        elif code in ("BINPUT", "LONG_BINPUT", "PUT"):
            memo[int(arg)] = last
        elif code in ("GLOBAL", "STACK_GLOBAL"):
            module, name = arg.split(" ") if code == "GLOBAL" else texts[-2:]
            module, name = names.py2_to_py3(module, name)
            full = f"{module}.{name}"
            if find(module, name) is MISSING and full not in found:
                found.append(full)
        if "UNICODE" not in code and code not in ("MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT"):
            last = None
    return found
