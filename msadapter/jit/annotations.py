"""Type annotations of TorchScript.

There is no TorchScript here, so the module has the names with which programs write and inspect annotations. It has no
classes of TorchScript's own types, such as TensorType.
"""

import inspect
import types
import typing
from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: F401, UP035  programs import them from here

BroadcastingList1 = BroadcastingList2 = BroadcastingList3 = List  # one value, or a list of 1, 2 or 3  # noqa: UP006


def is_function_or_method(the_callable) -> bool:
    """Return whether the object is a Python function or method."""
    return inspect.isfunction(the_callable) or inspect.ismethod(the_callable)


def is_vararg(the_callable) -> bool:
    """Return whether the function, or the __call__ of the object, takes any number of positional arguments."""
    if not is_function_or_method(the_callable) and callable(the_callable):
        the_callable = the_callable.__call__
    return is_function_or_method(the_callable) and inspect.getfullargspec(the_callable).varargs is not None


def is_list(ann) -> bool:
    """Return whether an annotation is List[...] or list[...]. RuntimeError for List without a type in brackets."""
    return _is_container(ann, list, List)  # noqa: UP006


def is_dict(ann) -> bool:
    """Return whether an annotation is Dict[...] or dict[...]. RuntimeError for Dict without types in brackets."""
    return _is_container(ann, dict, Dict)  # noqa: UP006


def is_tuple(ann) -> bool:
    """Return whether an annotation is Tuple[...] or tuple[...]. RuntimeError for Tuple without types in brackets."""
    return _is_container(ann, tuple, Tuple)  # noqa: UP006


def _is_container(ann, kind, bare) -> bool:
    if ann is bare:
        name = kind.__name__.capitalize()
        raise RuntimeError(f"{name} is used without the types that it contains, such as {name}[int]")
    return typing.get_origin(ann) is kind


def is_union(ann) -> bool:
    """Return whether an annotation is Union[...], Optional[...] or X | Y. RuntimeError for Union without types."""
    if ann is Union:
        raise RuntimeError("Union is used without the types that it contains, such as Union[int, None]")
    return typing.get_origin(ann) in (Union, types.UnionType)


def is_optional(ann) -> bool:
    """Return whether an annotation is a union of None and one other type. RuntimeError for Optional without a type."""
    if ann is Optional:
        raise RuntimeError("Optional is used without the type that it contains, such as Optional[int]")
    return is_union(ann) and len(typing.get_args(ann)) == 2 and type(None) in typing.get_args(ann)
