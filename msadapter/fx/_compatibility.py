"""torch.fx._compatibility: the mark of functions whose interface PyTorch promises to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["compatibility"]
_T = TypeVar("_T", bound=Callable[..., Any])
_BACK_COMPAT_OBJECTS: dict[Any, None] = {}
_MARKED_WITH_COMPATIBILITY: dict[Any, None] = {}


def compatibility(is_backward_compatible: bool) -> Callable[[_T], _T]:
    """Return a decorator that notes whether the interface of a function or class is kept."""

    def mark(fn: _T) -> _T:
        _MARKED_WITH_COMPATIBILITY.setdefault(fn)
        if is_backward_compatible:
            _BACK_COMPAT_OBJECTS.setdefault(fn)
        return fn

    return mark
