"""The functions and classes that a weights-only file may call, restricted to the arguments that PyTorch
writes.

A name on the allow-list is harmless only with harmless arguments. bytearray(10**12) uses all memory, an
attribute called `data` replaces a tensor's values, and a key made of deeply nested tuples takes forever to
hash. Everything that is refused here raises pickle.UnpicklingError.
"""

import functools
import inspect
import pickle
import types
from collections import Counter, OrderedDict

from .._host import extensions
from ..tensor import Size, Tensor, device
from ..tensor._pickling import OWN_ATTRIBUTES
from . import names

# Only nested tuples can take long to hash: a few bytes of pickle can describe 2**60 leaves.
LARGEST_KEY = 10_000


def refuse(text: str):
    """Raise the error for a file that asks for something forbidden."""
    raise pickle.UnpicklingError(text)


def described(obj) -> str:
    """Return a short text for messages. The repr of an object in a file could be larger than the memory."""
    if isinstance(obj, type) or inspect.isroutine(obj):
        return f"{obj.__module__}.{obj.__qualname__}"
    if isinstance(obj, str):
        return repr(obj if len(obj) < 100 else obj[:100] + "...")
    return f"an object of type {type(obj).__name__}"


# -- keys --------------------------------------------------------------------------------------------------
def check_keys(keys) -> None:
    """Refuse keys of a dict, or members of a set, that take long to hash."""
    for key in keys:
        if type(key) is not str and isinstance(key, (tuple, frozenset)):
            _check_key(key)


def _check_key(key) -> None:
    waiting, seen = [key], 0
    while waiting:
        part = waiting.pop()
        seen += len(part)
        if seen > LARGEST_KEY:
            refuse("a key of the file is too large")
        waiting += [inner for inner in part if isinstance(inner, (tuple, frozenset))]


def _mapping(kind):
    """Return the class of a dict or a set, restricted to no argument, pairs, a dict, or members."""

    def make(*args):
        if len(args) > 1 or (args and type(args[0]) not in (dict, list, tuple, set, OrderedDict, Counter)):
            refuse(f"{kind.__name__} is called with {', '.join(map(described, args))}")
        if args and kind is OrderedDict and not isinstance(args[0], dict):
            if any(type(pair) not in (tuple, list) or len(pair) != 2 for pair in args[0]):
                refuse("OrderedDict is called with arguments that are not pairs")
            check_keys(pair[0] for pair in args[0])
        elif args:
            check_keys(args[0])
        return kind(*args)

    return make


# -- bytes and numbers -------------------------------------------------------------------------------------
def latin1(text, encoding="latin1"):
    """`_codecs.encode` with the arguments that pickles of bytes use, and no others."""
    if type(text) is not str or encoding not in ("latin1", "latin-1"):
        raise ValueError(f"_codecs.encode is only allowed for latin1 text, not for {described(encoding)}")
    return text.encode("latin1")


def _bytearray(*args):
    if args and type(args[0]) not in (bytes, str):
        refuse(f"bytearray is called with {described(args[0])}")
    if len(args) > 1 and (type(args[0]) is not str or args[1:] not in (("latin-1",), ("latin1",))):
        # other encodings import modules, and punycode takes a time that is quadratic in the length
        refuse("bytearray is called with an encoding that is not latin-1")
    return bytearray(*args)


def _complex(*args):
    if any(type(arg) not in (int, float) for arg in args):
        refuse("complex is called with arguments that are not numbers")
    return complex(*args)


# -- small objects of torch --------------------------------------------------------------------------------
def _size(*args):
    if len(args) > 1 or any(type(arg) not in (tuple, list) for arg in args):
        refuse("torch.Size is called with an argument that is not a tuple")
    if any(type(length) is not int for arg in args for length in arg):
        refuse("torch.Size is called with lengths that are not numbers")
    return Size(*args)


def _device(*args):
    if not args or type(args[0]) is not str or any(type(arg) is not int for arg in args[1:]):
        refuse("torch.device is called with an argument that is not the name of a device")
    return device(*args)


def _tensor(*args):
    if args:  # torch.Tensor(1000) would reveal the former contents of the memory
        refuse("torch.Tensor is called with arguments")
    return Tensor()


def _parameter(data=None, requires_grad=True):
    if not isinstance(data, Tensor):
        refuse(f"torch.nn.Parameter is called with {described(data)}")
    return extensions.parameter_class.value(data, bool(requires_grad))


def get_layout(name):
    """torch.serialization._get_layout, restricted to names."""
    if type(name) is not str:  # another object could run code when it is hashed for the look-up
        refuse(f"_get_layout is called with {described(name)}")
    return names.find("torch.serialization", "_get_layout")(name)


# -- tensors -----------------------------------------------------------------------------------------------
def _utils(name: str):
    return names.find("torch._utils", name)


def _without_hooks(hooks) -> None:
    # PyTorch writes an empty dict. A hook is code of the program that saved, and a file of weights has none.
    if hooks is not None and (type(hooks) not in (dict, OrderedDict) or hooks):
        refuse("a tensor of the file brings backward hooks")


def _rebuild_tensor_v2(storage, storage_offset, size, stride, requires_grad, backward_hooks, metadata=None):
    _without_hooks(backward_hooks)
    return _utils("_rebuild_tensor_v2")(storage, storage_offset, size, stride, requires_grad, None, metadata)


def _rebuild_tensor_v3(
    storage, storage_offset, size, stride, requires_grad, backward_hooks, dtype, metadata=None
):
    _without_hooks(backward_hooks)
    return _utils("_rebuild_tensor_v3")(
        storage, storage_offset, size, stride, requires_grad, None, dtype, metadata
    )


def _rebuild_parameter(data, requires_grad, backward_hooks):
    _without_hooks(backward_hooks)
    return _parameter(data, requires_grad)


def _rebuild_parameter_with_state(data, requires_grad, backward_hooks, state):
    parameter = _rebuild_parameter(data, requires_grad, backward_hooks)
    check_state(type(parameter), state)
    return _utils("_set_obj_state")(parameter, state)


def rebuild_from_type(allowed_functions, allowed_classes):
    """Return torch._tensor._rebuild_from_type_v2, restricted to what the file could call itself.

    `allowed_functions()` and `allowed_classes()` return the lists of these objects.
    """

    def _rebuild_from_type_v2(func, new_type, args, state):
        if not any(func is allowed for allowed in allowed_functions()):
            refuse(f"_rebuild_from_type_v2 may not call {described(func)}, which rebuilds no tensor")
        if not any(new_type is allowed for allowed in allowed_classes()):
            refuse(f"_rebuild_from_type_v2 may not make {described(new_type)}")
        if type(args) is not tuple:  # an expanded tensor would be unpacked into any number of tensors
            refuse(f"_rebuild_from_type_v2 takes a tuple of arguments, not {described(args)}")
        if (
            new_type is not Tensor and new_type is not extensions.parameter_class.value
        ):  # the user's class, and its state
            return _utils("_rebuild_from_type_v2")(func, new_type, args, state)
        made = _utils("_rebuild_from_type_v2")(func, new_type, args, None)
        check_state(type(made), state)  # of the class that it has: a sparse tensor keeps its own
        return _utils("_set_obj_state")(made, state)

    return _rebuild_from_type_v2


# -- attributes --------------------------------------------------------------------------------------------
def check_state(kind, state) -> None:
    """Refuse a state that does more than add attributes to an object of class `kind`.

    If the class has an attribute of the same name, it would hide a method or run the setter of a property.
    """
    plain, slots = state if type(state) is tuple and len(state) == 2 else (state, None)
    for part in (plain, slots):
        if part is None:
            continue
        if type(part) not in (dict, OrderedDict):
            refuse(f"the state of {kind.__name__} is {described(part)}, no dict")
        for name, value in part.items():
            if name in _MARKS and type(value) is bool:
                continue
            if type(name) is not str or not _is_free(kind, name):
                refuse(f"the state of {kind.__name__} may not set {described(name)}")


@functools.lru_cache(maxsize=4096)
def _is_free(kind, name: str) -> bool:
    # the indices and values of a sparse tensor are attributes with these names
    sparse = issubclass(kind, Tensor) and kind not in (Tensor, extensions.parameter_class.value)
    if name in getattr(kind, "__dataclass_fields__", ()):
        return True
    if name.startswith("__") or name in OWN_ATTRIBUTES | _MARKS or (sparse and name.startswith("_")):
        return False
    found = inspect.getattr_static(kind, name, None)
    return (
        found is None
        or isinstance(found, types.MemberDescriptorType)
        or not (callable(found) or hasattr(found, "__get__"))
    )


# What makes a tensor of another class a parameter or a buffer, as in PyTorch.
_MARKS = frozenset(["_is_buffer", "_is_param"])


_REBUILDERS = {
    "_rebuild_tensor_v2": _rebuild_tensor_v2,
    "_rebuild_tensor_v3": _rebuild_tensor_v3,
    "_rebuild_parameter": _rebuild_parameter,
    "_rebuild_parameter_with_state": _rebuild_parameter_with_state,
}


def rebuilder(name: str):
    """Return the function of torch._utils with this name, in the form for untrusted files."""
    return _REBUILDERS.get(name) or _utils(name)


_guards: dict = {}


def caller(found):
    """Return what REDUCE and NEWOBJ call instead of `found`, an object of the default allow-list."""
    if not _guards:
        pairs = [(kind, _mapping(kind)) for kind in (OrderedDict, Counter, set)]
        pairs += [(bytearray, _bytearray), (complex, _complex), (Size, _size), (device, _device)]
        pairs += [(Tensor, _tensor), (extensions.parameter_class.value, _parameter)]
        _guards.update((id(kind), guard) for kind, guard in pairs)
    guard = _guards.get(id(found))
    if guard is not None:
        return guard
    return found if isinstance(found, types.FunctionType) else None
