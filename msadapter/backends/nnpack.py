"""torch.backends.nnpack: NNPACK is not used. Its switch is only stored."""

from collections.abc import Iterator
from contextlib import contextmanager

_enabled = True


def is_available() -> bool:
    """Return False, because NNPACK is not used."""
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Set whether NNPACK may be used, and return the former value in a tuple.

    Raises:
        RuntimeError: the value is not a bool.
    """
    if not isinstance(_enabled, bool):
        raise RuntimeError(f"set_enabled_NNPACK expects a bool, but got {type(_enabled).__name__}")
    former = globals()["_enabled"]
    globals()["_enabled"] = _enabled
    return (former,)


@contextmanager
def flags(enabled: bool = False) -> Iterator[None]:
    """Set whether NNPACK may be used, inside a block."""
    former = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(*former)
