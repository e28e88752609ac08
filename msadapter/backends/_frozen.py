"""What modules with settings share. After disable_global_flags, settings change only inside `flags(...)` blocks."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_allowed = [True]


def flags_frozen() -> bool:
    """Return whether settings can no longer be assigned to."""
    return not _allowed[0]


def disable_global_flags() -> None:
    """Make every later assignment to a setting of torch.backends, cudnn or mkldnn an error. `flags(...)` still sets them."""
    _allowed[0] = False


@contextmanager
def allowed() -> Iterator[None]:
    """Allow assignments inside a block."""
    before = _allowed[0]
    _allowed[0] = True
    try:
        yield
    finally:
        _allowed[0] = before


def exchange(module, given: dict) -> tuple:
    """Set attributes of a module to the values that are not None, in their order, and return the former ones of all."""
    former = tuple(getattr(module, name) for name in given)
    with allowed():
        for name, value in given.items():
            if value is not None:
                setattr(module, name, value)
    return former


@contextmanager
def restored(set_flags: Callable[..., tuple], *values: Any) -> Iterator[None]:
    """Call ``set_flags`` with the values, and after the block with the former values, which it returns."""
    former = set_flags(*values)
    try:
        yield
    finally:
        set_flags(*former)


def check_bool(setter: str, value: Any) -> None:
    """Raise PyTorch's RuntimeError, which names its internal setter, if a value is not a bool."""
    if not isinstance(value, bool):
        raise RuntimeError(f"{setter} expects a bool, but got {type(value).__name__}")


class FrozenModule(types.ModuleType):
    """A module with settings. Subclasses name them in ``_settings``.

    Raises:
        RuntimeError: a setting is assigned to after ``disable_global_flags``.
    """

    _settings: frozenset[str] = frozenset()

    def __setattr__(self, name, value):
        if name in self._settings and flags_frozen():
            place = "torch." + self.__name__.partition(".")[2]
            raise RuntimeError(
                f"not allowed to set {place} flags after disable_global_flags; please use flags() context manager instead"
            )
        super().__setattr__(name, value)
