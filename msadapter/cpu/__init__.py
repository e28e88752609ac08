"""torch.cpu: the CPU as a device, on which all work is synchronous."""

from . import amp

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
    """A queue of work. It is always empty, because work is synchronous."""

    def __init__(self, priority: int = -1):
        """The priority has no effect, because there is never work to order."""

    def wait_stream(self, stream) -> None:
        """Does nothing, because there is never work to wait for."""

    def record_event(self) -> None:
        """Does nothing and returns None, as in PyTorch."""

    def wait_event(self, event) -> None:
        """Does nothing, because there is never work to wait for."""


class Event:
    """A point in a stream. The work before it is always done."""

    def query(self) -> bool:
        return True

    def record(self, stream=None) -> None:
        """Does nothing, because work is synchronous."""

    def synchronize(self) -> None:
        """Does nothing, because there is never work to wait for."""

    def wait(self, stream=None) -> None:
        """Does nothing, because there is never work to wait for."""


_state = {"current": Stream()}


class StreamContext:
    """A block in which ``current_stream()`` is the given stream. None leaves the current one."""

    def __init__(self, stream: Stream | None):
        self.stream = stream
        self._before: list[Stream] = []

    def __enter__(self) -> None:
        self._before.append(_state["current"])
        if self.stream is not None:
            _state["current"] = self.stream

    def __exit__(self, *error) -> None:
        _state["current"] = self._before.pop()


def current_stream(device=None) -> Stream:
    """Return the stream that a block of ``stream`` has selected, or the default one."""
    return _state["current"]


def stream(stream) -> StreamContext:
    """Return a context manager that selects a stream."""
    return StreamContext(stream)


def synchronize(device=None) -> None:
    """Does nothing, because there is never work to wait for."""


def device_count() -> int:
    """Return 1."""
    return 1


def is_available() -> bool:
    """Return True."""
    return True


def is_initialized() -> bool:
    """Return True."""
    return True


def current_device() -> str:
    """Return 'cpu'."""
    return "cpu"


def set_device(device) -> None:
    """Does nothing, because there is only one device."""
