"""Functions of torch that are about the process: warnings, and the module of a device."""

from __future__ import annotations

import importlib

from ._host import accelerator as _accelerator
from ._host.warn import is_warn_always_enabled, set_warn_always
from ._values.device import device as Device

__all__ = ["get_device_module", "is_warn_always_enabled", "set_warn_always"]


def get_device_module(device=None):
    """Return the module of a device: torch.cuda, torch.npu or torch.cpu. RuntimeError for a device without one."""
    kind = (_accelerator.kind() or "cpu") if device is None else Device(device).type
    try:
        return importlib.import_module(f".{kind}", __package__)
    except ModuleNotFoundError:
        raise RuntimeError(f"Invalid device module '{kind}' in your 'torch' installation") from None
