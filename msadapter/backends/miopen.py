"""torch.backends.miopen: MIOpen, AMD's library, is not used. Its setting is only stored."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ._fp32 import exchange
from ._frozen import FrozenModule

_immediate = False


def set_flags(_immediate: bool | None = None) -> tuple[bool]:
    """Set the immediate mode unless the value is None, and return the former one in a tuple.

    Raises:
        RuntimeError: the value is not a bool.
    """
    return exchange(sys.modules[__name__], {"immediate": _immediate})


@contextmanager
def flags(immediate: bool = False) -> Iterator[None]:
    """Set the immediate mode inside a block."""
    former = set_flags(immediate)
    try:
        yield
    finally:
        set_flags(*former)


class _Settings(FrozenModule):
    _settings = frozenset({"immediate"})

    @property
    def immediate(self) -> bool:
        return self._immediate

    @immediate.setter
    def immediate(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError(f"set_immediate_miopen expects a bool, but got {type(value).__name__}")
        self._immediate = value


sys.modules[__name__].__class__ = _Settings
