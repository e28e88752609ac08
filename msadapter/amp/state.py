"""Which device types have autocast on, in which precision, for each thread.

Every change is passed to the dispatcher (csrc/dispatch/autocast.cpp), which casts operands by the policies that the
operators' declarations give (``autocast=`` of msadapter/ops).
"""

import threading

from .._host.native import load
from .._values.dtype import bfloat16, float16
from ..ops.internal import autocast_cache, clear_autocast_cache

DEVICE_TYPES = ("cpu", "cuda", "npu", "privateuseone", "xpu", "mtia", "maia", "hpu", "ipu", "mps", "xla")


class _Settings:
    """The autocast settings of one device type."""

    __slots__ = ("enabled", "dtype")

    def __init__(self, dtype):
        self.enabled = False
        self.dtype = dtype


class AutocastState(threading.local):
    """The autocast state of a thread."""

    def __init__(self):
        self.nesting = 0
        self._devices = {"cpu": _Settings(bfloat16), "accelerator": _Settings(float16)}

    @property
    def cache_enabled(self) -> bool:
        """Whether the casts of parameters are kept until the outermost block ends."""
        return autocast_cache.enabled

    @cache_enabled.setter
    def cache_enabled(self, enabled: bool) -> None:
        autocast_cache.enabled = bool(enabled)

    def settings(self, device_type: str) -> _Settings:
        """Return the settings of 'cpu' or of the accelerator (cuda and npu are the same device)."""
        if device_type not in DEVICE_TYPES:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        return self._devices["cpu" if device_type == "cpu" else "accelerator"]

    @property
    def enabled(self) -> bool:
        """Whether any device type has autocast on."""
        return any(settings.enabled for settings in self._devices.values())

    def set_enabled(self, device_type: str, enabled: bool) -> None:
        self.settings(device_type).enabled = bool(enabled)
        self._tell(device_type)

    def set_dtype(self, device_type: str, dtype) -> None:
        self.settings(device_type).dtype = dtype
        self._tell(device_type)

    def _tell(self, device_type: str) -> None:
        settings = self.settings(device_type)
        load().set_autocast(device_type != "cpu", settings.enabled, settings.dtype)

    def clear_cache(self) -> None:
        clear_autocast_cache()


state = AutocastState()
