"""torch.backends.disable_global_flags: from then on, settings change only inside `flags(...)` blocks."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager

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
