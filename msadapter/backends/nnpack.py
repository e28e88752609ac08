"""torch.backends.nnpack: NNPACK is not used. Its switch is only stored."""

from contextlib import AbstractContextManager

from . import _frozen

_enabled = True


def is_available() -> bool:
    """Return False, because NNPACK is not used."""
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Set whether NNPACK may be used, and return the former value in a tuple.

    Raises:
        RuntimeError: the value is not a bool.
    """
    _frozen.check_bool("set_enabled_NNPACK", _enabled)
    former = globals()["_enabled"]
    globals()["_enabled"] = _enabled
    return (former,)


def flags(enabled: bool = False) -> AbstractContextManager[None]:
    """Set whether NNPACK may be used, inside a block."""
    return _frozen.restored(set_flags, enabled)
