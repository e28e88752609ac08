"""Functions of torch that are about the process: warnings, and the module of a device."""

from __future__ import annotations

import importlib
import warnings

from ._host import accelerator as _accelerator
from ._values.device import device as Device

_warned_always = False


def set_warn_always(b: bool) -> None:
    """Set whether a warning is shown every time, rather than once."""
    global _warned_always
    _warned_always = bool(b)
    warnings.simplefilter("always" if b else "default", UserWarning)


def is_warn_always_enabled() -> bool:
    """Return what `set_warn_always` was given."""
    return _warned_always


def get_device_module(device=None):
    """Return the module of a device: torch.cuda, torch.npu or torch.cpu. RuntimeError for a device without one."""
    kind = (_accelerator.kind() or "cpu") if device is None else Device(device).type
    try:
        return importlib.import_module(f".{kind}", __package__)
    except ModuleNotFoundError:
        raise RuntimeError(f"Invalid device module '{kind}' in your 'torch' installation") from None
