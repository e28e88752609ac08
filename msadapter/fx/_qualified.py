"""How functions and types are written in the text and in the code of a graph."""

from __future__ import annotations

import builtins
import inspect
import re
import types

from .._serialization import names
from ..ops._declare import OPERATOR_TYPES, namespaces
from ..tensor import Tensor

__all__ = ["is_method", "place", "qualified_name", "shown_target", "snake_case", "type_text"]


def type_text(obj) -> str:
    """Return a type as an annotation names it: builtins without their module, other classes with it."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        if obj.__module__ == "builtins":
            return obj.__qualname__
        return ".".join(names.place_of(obj) or (obj.__module__, obj.__qualname__))
    if obj is ...:
        return "..."
    return obj.__name__ if isinstance(obj, types.FunctionType) else repr(obj)


def _name_of_lambda(function) -> str:
    """Return the variable to which the source assigns a lambda function."""
    try:
        return inspect.getsource(function).split("=")[0].strip()
    except (OSError, TypeError) as error:
        raise RuntimeError("Unable to represent lambda") from error


def is_method(function) -> bool:
    """Return whether a function is a method of Tensor, and not also a function of torch, as torch.relu_ is."""
    name = getattr(function, "__name__", "")
    if type(function) not in OPERATOR_TYPES or namespaces["torch"].get(name) is function:
        return False
    return getattr(Tensor, name, None) is function


def place(function) -> tuple[str, str]:
    """Return the module and the name under which a program that uses PyTorch finds a function or class."""
    name = function.__name__
    if getattr(builtins, name, None) is function:
        return "", name
    if name == "<lambda>":
        name = _name_of_lambda(function)
    if is_method(function):
        return "torch", f"Tensor.{name}"
    module = getattr(function, "__module__", None)
    if module is None:
        raise RuntimeError(f"cannot find module for {function}")
    return names.place_of(function, name) or (module, name)


def qualified_name(function) -> str:
    """Return the name under which code finds a function: that of a builtin alone, any other with its module."""
    module, name = place(function)
    module = module.replace("torch._ops", "torch.ops")
    return f"{module}.{name}" if module else name


def shown_target(target) -> str:
    """Return the target of a node as the text of a graph names it."""
    if isinstance(target, str):
        return target
    module, name = getattr(target, "__module__", None), getattr(target, "__name__", None)
    if name is not None and module in ("builtins", "_operator"):
        return f"{module.removeprefix('_')}.{name}"
    return qualified_name(target)


def snake_case(name: str) -> str:
    """Return a name such as pascalCase as pascal_case."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()
