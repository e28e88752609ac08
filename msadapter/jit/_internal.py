"""torch._jit_internal: the marks and checks of TorchScript's compiler, which libraries import although the module is private.

There is no TorchScript here. A mark is kept on its function, so that code which asks for it finds it; nothing else reads it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, Dict, Final, List, Optional, Tuple, Union  # noqa: F401, UP035  programs import them from here

from ..futures import Future
from ._isinstance import is_instance as _isinstance
from .annotations import (
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    is_dict,
    is_list,
    is_optional,
    is_tuple,
    is_union,
)

__all__ = [
    "BroadcastingList1",
    "BroadcastingList2",
    "BroadcastingList3",
    "FunctionModifiers",
    "Future",
    "_copy_to_script_wrapper",
    "_disable_emit_hooks",
    "_isinstance",
    "_overload",
    "_overload_method",
    "boolean_dispatch",
    "boolean_dispatched",
    "export",
    "get_torchscript_modifier",
    "ignore",
    "is_dict",
    "is_ignored_fn",
    "is_list",
    "is_optional",
    "is_scripting",
    "is_tuple",
    "is_union",
    "module_has_exports",
    "should_drop",
    "unused",
]

# The functions that boolean_dispatch has made -> what it was given.
boolean_dispatched: weakref.WeakKeyDictionary[Callable, dict[str, Any]] = weakref.WeakKeyDictionary()


class FunctionModifiers:
    """The marks of functions: how TorchScript's compiler would treat them."""

    UNUSED = "unused (ignored and replaced with raising of an exception)"
    IGNORE = "ignore (leave as a call to Python, cannot be torch.jit.save'd)"
    EXPORT = "export (compile this function even if nothing calls it)"
    DEFAULT = "default (compile if called from an exported function / forward)"
    COPY_TO_SCRIPT_WRAPPER = "if this method is not scripted, copy the python method onto the scripted model"
    _DROP = "_drop (function is fully ignored, declaration can be unscriptable)"


def _marked(fn, mark: str):
    fn._torchscript_modifier = mark
    return fn


def export(fn):
    """Mark a method that is to be compiled although ``forward`` does not call it, and return it."""
    return _marked(fn, FunctionModifiers.EXPORT)


def unused(fn):
    """Mark a function that a scripted program must not call, and return it."""
    return _marked(fn, FunctionModifiers.UNUSED)


def ignore(drop=False, **kwargs):
    """Mark a function that stays Python in a scripted program, and return it; or return a decorator that does so."""
    if callable(drop):
        return _marked(drop, FunctionModifiers.IGNORE)
    if not isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    return lambda fn: _marked(fn, FunctionModifiers.UNUSED if drop else FunctionModifiers.IGNORE)


def _copy_to_script_wrapper(fn):
    """Mark a method of a class in Python that a scripted module keeps, and return it."""
    return _marked(fn, FunctionModifiers.COPY_TO_SCRIPT_WRAPPER)


def is_scripting() -> bool:
    """Return False."""
    return False


def _overload(func):
    """Return the function unchanged. Its body is empty: it declares types for TorchScript."""
    return func


def _overload_method(func):
    """Return the method unchanged, as ``_overload`` does."""
    return func


def get_torchscript_modifier(fn):
    """Return the mark of a function or method, or None if the object cannot be called."""
    if not callable(fn):
        return None
    return getattr(getattr(fn, "__func__", fn), "_torchscript_modifier", FunctionModifiers.DEFAULT)


def should_drop(fn) -> bool:
    """Return whether a scripted program would leave the function out."""
    return get_torchscript_modifier(fn) in (FunctionModifiers.UNUSED, FunctionModifiers._DROP)


def is_ignored_fn(fn) -> bool:
    """Return whether TorchScript's compiler would not compile the function."""
    return should_drop(fn) or get_torchscript_modifier(fn) == FunctionModifiers.IGNORE


def module_has_exports(mod) -> bool:
    """Return whether a method of the module is marked by ``torch.jit.export``."""
    methods = (getattr(mod, name) for name in dir(mod) if hasattr(mod, name))
    return any(get_torchscript_modifier(method) == FunctionModifiers.EXPORT for method in methods)


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """Return a function that calls one of two others, as an argument says which is true or false.

    Args:
        arg_name, arg_index, default: the name of that argument, its position, and its value in calls that do not give it.
        if_true, if_false: the two functions. At most one of them has a docstring, which the others get.
        module_name, func_name: the new function's name, and that of its module.
    """
    docs = {doc for doc in (if_true.__doc__, if_false.__doc__) if doc is not None}
    if if_true.__doc__ is not None and if_false.__doc__ is not None:
        raise RuntimeError("only one function can have a docstring")

    def fn(*args, **kwargs):
        given = args[arg_index] if arg_index < len(args) else default
        return (if_true if kwargs.get(arg_name, given) else if_false)(*args, **kwargs)

    fn.__doc__ = if_true.__doc__ = if_false.__doc__ = next(iter(docs), None)
    fn.__module__ = module_name or fn.__module__
    fn.__name__ = func_name or fn.__name__
    boolean_dispatched[fn] = {
        "if_true": if_true,
        "if_false": if_false,
        "index": arg_index,
        "default": default,
        "arg_name": arg_name,
    }
    return fn


@contextmanager
def _disable_emit_hooks():
    """A block without effect: there are no hooks of TorchScript's compiler."""
    yield
