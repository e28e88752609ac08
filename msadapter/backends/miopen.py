"""torch.backends.miopen: MIOpen, AMD's library, is not used. Its setting is only stored."""

import sys
from contextlib import AbstractContextManager

from . import _frozen

_immediate = False


def set_flags(_immediate: bool | None = None) -> tuple[bool]:
    """Set the immediate mode unless the value is None, and return the former one in a tuple.

    Raises:
        RuntimeError: the value is not a bool.
    """
    return _frozen.exchange(sys.modules[__name__], {"immediate": _immediate})


def flags(immediate: bool = False) -> AbstractContextManager[None]:
    """Set the immediate mode inside a block."""
    return _frozen.restored(set_flags, immediate)


class _Settings(_frozen.FrozenModule):
    _settings = frozenset({"immediate"})

    @property
    def immediate(self) -> bool:
        return self._immediate

    @immediate.setter
    def immediate(self, value: bool) -> None:
        _frozen.check_bool("set_immediate_miopen", value)
        self._immediate = value


sys.modules[__name__].__class__ = _Settings
