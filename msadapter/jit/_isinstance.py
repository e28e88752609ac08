"""torch.jit.isinstance: Python's isinstance with the contained types of containers."""

from __future__ import annotations

import types
import typing

_RAW = {
    list: "list",
    dict: "dict",
    tuple: "tuple",
    typing.List: "List",  # noqa: UP006
    typing.Dict: "Dict",  # noqa: UP006
    typing.Tuple: "Tuple",  # noqa: UP006
    typing.Optional: "Optional",
}


def _check_contained(target) -> None:
    """Containers need contained types."""
    name = _RAW.get(target) if isinstance(target, typing.Hashable) else None
    if name is None:
        return
    if name.endswith("ict"):
        raise RuntimeError(
            f"Attempted to use {name} without contained types. Please add contained type, e.g. {name}[int, int]"
        )
    raise RuntimeError(
        f"Attempted to use {name} without a contained type. Please add a contained type, e.g. {name}[int]"
    )


def _fits(value, target) -> bool:
    """Whether a value is of a type, of which the origin may be a container."""
    _check_contained(target)
    origin, inner = typing.get_origin(target), typing.get_args(target)
    if origin is None:
        return isinstance(value, target)
    if origin is list:
        return isinstance(value, list) and all(_fits(v, inner[0]) for v in value)
    if origin is dict:
        return isinstance(value, dict) and all(
            isinstance(k, inner[0]) and _fits(v, inner[1]) for k, v in value.items()
        )
    if origin is tuple:
        same = isinstance(value, tuple) and len(value) == len(inner)
        return same and all(_fits(v, t) for v, t in zip(value, inner, strict=True))
    if origin in (typing.Union, types.UnionType):
        return value is None or any(_fits(value, t) for t in inner)
    return False


def is_instance(obj, target_type) -> bool:
    """Return whether an object is of a type, or of one of a tuple of types. Of a container all elements are checked.

    Raises:
        RuntimeError: a container is given without its contained types.
    """
    if isinstance(target_type, tuple):
        return any(is_instance(obj, one) for one in target_type)
    return _fits(obj, target_type)
