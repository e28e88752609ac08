"""torch.accelerator: the current accelerator under any name."""

from ._host import accelerator as _accelerator
from .cuda import (
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)
from .cuda.memory import mem_get_info as get_memory_info
from .cuda.streams import current_stream, set_stream, synchronize
from .tensor import device

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "device_index",
    "empty_cache",
    "get_memory_info",
    "is_available",
    "max_memory_allocated",
    "max_memory_reserved",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_memory_stats",
    "set_device_idx",
    "set_device_index",
    "set_stream",
    "synchronize",
]

device_count, is_available = _accelerator.device_count, _accelerator.is_available
current_device_index = current_device_idx = _accelerator.current_device


def current_accelerator(check_available: bool = False):
    """Return a torch.device with the type of the accelerator, or None if this run has none."""
    kind = _accelerator.kind()
    if kind is None:
        return None
    return device(kind)


def set_device_index(device) -> None:
    """Make a device the current one."""
    _accelerator.set_device(_accelerator.index_of(device))


set_device_idx = set_device_index


class device_index(_accelerator.Device):
    """Makes another device the current one inside a ``with`` block."""
