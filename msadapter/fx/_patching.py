"""What is replaced while a program is traced: calls and attributes of modules, and functions that are recorded as they are."""

from __future__ import annotations

import contextlib
import functools
import operator
import sys
import types

import msadapter

from .. import nn
from ..nn import functional as F
from ..overrides import TorchFunctionMode
from .proxy import proxies_in, record

__all__ = ["patched", "public_function", "wrap"]
_wrapped_fns_to_patch: dict = {}  # (id of a module's globals, name) -> the globals
_wrapped_methods_to_patch: list[tuple[type, str]] = []
_ASKING = ("is_tensor", "is_storage", "typename", "compile", "install")  # they answer for stand-ins too


def wrap(fn_or_name):
    """Make a function of the caller's module a leaf: its calls are recorded, instead of the operations inside.

    Call it at module scope with the function or its name, which may be a builtin such as ``"len"``, or use it as a decorator.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped_fns_to_patch[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


class Recording(TorchFunctionMode):
    """Records calls of table functions with proxies as nodes."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if not proxies_in((args, kwargs)):
            return function(*args, **kwargs)
        return record(public_function(function), args, kwargs)


@functools.cache
def public_function(function):
    """Return the public function for an internal one, for example operator.getitem for indexing."""
    return (
        operator.getitem
        if getattr(function, "__name__", "") in ("__getitem__", "_getitem", "getitem")
        else function
    )


def _recorded(function, is_wrapped: bool = True):
    """Return a function that becomes one node if it is called with proxies. Else it is called."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        found = proxies_in((args, kwargs))
        if not found:
            return function(*args, **kwargs)
        made = found[0].tracer.create_proxy("call_function", function, args, kwargs)
        if is_wrapped and hasattr(made, "node"):
            made.node.meta["is_wrapped"] = True
        return made

    return wrapper


def _recorded_method(cls: type, name: str):
    method = getattr(cls, name)

    @functools.wraps(method)
    def wrapper(*args, **kwargs):
        found = proxies_in((args, kwargs))
        if found:
            return found[0].tracer.create_proxy("call_method", name, args, kwargs)
        return method(*args, **kwargs)

    return wrapper


class _Patches:
    """Replacements in namespaces, which `take_back` undoes."""

    def __init__(self):
        self._saved: list = []
        self._seen: set[int] = set()

    def put(self, space: dict, name: str, value) -> None:
        """Set a global of a module."""
        self._saved.append((space, name, space.get(name, _Absent)))
        space[name] = value

    def autowrap(self, space: dict, ids: set[int]) -> None:
        """Let the functions with these ids become nodes where the globals of a module name them."""
        if id(space) in self._seen:
            return
        self._seen.add(id(space))
        for name, value in list(space.items()):
            if not name.startswith("_") and callable(value) and id(value) in ids:
                self.put(space, name, _recorded(value))

    def take_back(self) -> None:
        """Restore what was replaced."""
        for space, name, value in reversed(self._saved):
            if value is _Absent:
                del space[name]
            else:
                space[name] = value


class _Absent:
    """Marks a global that was not there."""


def _put_wrapped(patches: _Patches) -> None:
    """Let the functions become nodes that programs have given to `wrap`, and the plain functions of torch."""
    for (_, name), space in list(_wrapped_fns_to_patch.items()):
        function = space[name] if name in space else vars(sys.modules["builtins"])[name]
        patches.put(space, name, _recorded(function))
    for space in (vars(msadapter), vars(F)):
        for name, value in list(space.items()):
            if isinstance(value, types.FunctionType) and not name.startswith("_") and name not in _ASKING:
                patches.put(space, name, _recorded(value, is_wrapped=False))


@contextlib.contextmanager
def patched(tracer, spaces=(), autowrapped: set[int] = frozenset()):
    """Within this block, `tracer` gets the calls and the attributes of modules, and what is called with proxies.

    Args:
        spaces: the globals in which the functions of `autowrapped`, a set of ids, become nodes.
    """
    patches, parameters = _Patches(), {}
    call, plain_getattr, own = nn.Module.__call__, nn.Module.__getattr__, "__getattr__" in vars(nn.Module)

    def module_call(module, *args, **kwargs):
        patches.autowrap(getattr(getattr(module, "forward", module), "__globals__", {}), autowrapped)
        return tracer.call_module(module, lambda *a, **k: call(module, *a, **k), args, kwargs)

    def module_getattr(module, name):
        return tracer.getattr(name, plain_getattr(module, name), parameters)

    methods = [(cls, name, getattr(cls, name)) for cls, name in _wrapped_methods_to_patch]
    try:
        nn.Module.__call__, nn.Module.__getattr__ = module_call, module_getattr
        _put_wrapped(patches)
        for cls, name in _wrapped_methods_to_patch:
            setattr(cls, name, _recorded_method(cls, name))
        for space in spaces:
            patches.autowrap(space, autowrapped)
        with Recording():
            yield
    finally:
        for cls, name, method in methods:
            setattr(cls, name, method)
        patches.take_back()
        nn.Module.__call__ = call
        if own:
            nn.Module.__getattr__ = plain_getattr
        else:
            del nn.Module.__getattr__
