"""torch.cpu: the host seen as a device; everything is done at once."""

from contextlib import nullcontext

from ..amp import autocast as _autocast

__all__ = [
    "Event",
    "Stream",
    "StreamContext",
    "amp",
    "current_device",
    "current_stream",
    "device_count",
    "is_available",
    "is_initialized",
    "set_device",
    "stream",
    "synchronize",
]


class Stream:
    """A queue of work: always empty."""

    def __init__(self, priority: int = -1):
        self.priority = priority

    def wait_stream(self, stream) -> None:
        """Nothing to wait for."""

    def record_event(self):
        """An event in this stream."""
        return Event()

    def wait_event(self, event) -> None:
        """Nothing to wait for."""


class Event:
    """A moment: already passed."""

    def query(self) -> bool:
        return True

    def record(self, stream=None) -> None:
        """Nothing to note."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait(self, stream=None) -> None:
        """Nothing to wait for."""


_default = Stream()
StreamContext = nullcontext


def current_stream(device=None) -> Stream:
    """The one stream."""
    return _default


def stream(stream):
    """Context manager for a stream."""
    return nullcontext(stream)


def synchronize(device=None) -> None:
    """Nothing to wait for."""


def device_count() -> int:
    """1."""
    return 1


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def current_device() -> str:
    """'cpu'."""
    return "cpu"


def set_device(device) -> None:
    """Nothing to choose."""


class amp:
    """torch.cpu.amp."""

    class autocast(_autocast):
        """torch.amp.autocast('cpu', ...)."""

        def __init__(self, enabled=True, dtype=None, cache_enabled=True):
            super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)
