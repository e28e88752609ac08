"""Warnings that PyTorch shows once in a process, or every time if the program asks for that."""

from __future__ import annotations

import warnings

_shown: set[str] = set()
_always = False


def set_warn_always(b: bool) -> None:
    """Set whether a warning is shown every time, rather than once."""
    global _always
    _always = bool(b)
    warnings.simplefilter("always" if b else "default", UserWarning)


def is_warn_always_enabled() -> bool:
    """Return what `set_warn_always` was given."""
    return _always


def warn_of_old_amp(device: str, call: str, instead: str) -> None:
    """Warn the caller of the caller that ``torch.DEVICE.amp`` has a general form in ``torch.amp``."""
    warnings.warn(
        f"`torch.{device}.amp.{call}(args...)` is deprecated. Please use `torch.amp.{call}({instead})` instead.",
        FutureWarning,
        stacklevel=3,
    )


def warn_once(message: str, stacklevel: int = 2) -> None:
    """Show a UserWarning, unless the same message was shown before."""
    if _always or message not in _shown:
        _shown.add(message)
        warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)
