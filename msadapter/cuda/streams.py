"""Streams and events. Work is done at once and in order, so waiting is trivial; times are real."""

import threading
import time

from .._host import accelerator as _accelerator

_local = threading.local()
_next_id = [1]


class Stream:
    """A queue of work. Everything that was put into it is already done."""

    def __new__(cls, device=None, priority=0, **kwargs):
        self = super().__new__(cls)
        self.device_index = kwargs.get("device_index", _accelerator.index_of(device))
        self.stream_id = kwargs.get("stream_id")
        if self.stream_id is None:
            self.stream_id = _next_id[0]
            _next_id[0] += 1
        self.device_type = kwargs.get("device_type", 1)
        self.priority = priority
        return self

    def __init__(self, device=None, priority=0, **kwargs):
        pass

    @property
    def device(self):
        from ..tensor import device

        return device(_accelerator.kind() or "cuda", self.device_index)

    @property
    def cuda_stream(self) -> int:
        return self.stream_id

    npu_stream = cuda_stream

    @property
    def _as_parameter_(self):
        import ctypes

        return ctypes.c_void_p(self.stream_id)

    @classmethod
    def priority_range(cls):
        """(lowest, highest) priority."""
        return 0, -1

    def wait_event(self, event) -> None:
        """Later work waits for the event: it is done already."""

    def wait_stream(self, stream) -> None:
        """Later work waits for what is in the other stream: it is done already."""

    def record_event(self, event=None):
        """Record an event here and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Whether all work is done: always."""
        return True

    def synchronize(self) -> None:
        """Wait for all work."""
        synchronize()

    def __enter__(self):
        self._context = StreamContext(self)
        self._context.__enter__()
        return self

    def __exit__(self, *exc):
        self._context.__exit__(*exc)

    def __eq__(self, other):
        return isinstance(other, Stream) and (other.stream_id, other.device_index) == (
            self.stream_id,
            self.device_index,
        )

    def __hash__(self):
        return hash((self.stream_id, self.device_index))

    def __repr__(self):
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.stream_id:#x}>"


class ExternalStream(Stream):
    """A stream that another library has made."""

    def __new__(cls, stream_ptr, device=None, **kwargs):
        return super().__new__(cls, device=device, stream_id=stream_ptr, **kwargs)

    def __init__(self, stream_ptr, device=None, **kwargs):
        pass


class Event:
    """A moment in a stream, with its time if enable_timing."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False, device=None):
        self.enable_timing = enable_timing
        self._time = None

    @classmethod
    def from_ipc_handle(cls, device, handle):
        """Not possible here: there are no events between processes."""
        raise NotImplementedError("torch.cuda.Event.from_ipc_handle is not supported (docs/coverage.md)")

    def record(self, stream=None) -> None:
        """Note the present moment."""
        synchronize()
        self._time = time.perf_counter()

    def wait(self, stream=None) -> None:
        """Make a stream wait for this event: it has happened already."""

    def query(self) -> bool:
        """Whether the work before the event is done: always."""
        return True

    def synchronize(self) -> None:
        """Wait for the event: it has happened already."""

    def elapsed_time(self, end_event) -> float:
        """Milliseconds from this event to `end_event`."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._time is None or end_event._time is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._time - self._time) * 1e3

    def __repr__(self):
        return f"<torch.cuda.Event recorded={self._time is not None}>"


class StreamContext:
    """Context manager: another current stream for a block (torch.cuda.stream)."""

    def __init__(self, stream):
        self.stream = stream

    def __enter__(self):
        if self.stream is not None:
            self._before = current_stream(self.stream.device_index)
            self._device = _accelerator.current_device()
            _accelerator.set_device(self.stream.device_index)
            set_stream(self.stream)
        return self.stream

    def __exit__(self, *exc):
        if self.stream is not None:
            set_stream(self._before)
            _accelerator.set_device(self._device)


def stream(stream):
    """Context manager: `stream` is current in the block (None: nothing changes)."""
    return StreamContext(stream)


def default_stream(device=None) -> Stream:
    """The stream of a device that is current at the start."""
    return Stream(device_index=_accelerator.index_of(device), stream_id=0)


def current_stream(device=None) -> Stream:
    """The current stream of a device in this thread."""
    index = _accelerator.index_of(device)
    streams = getattr(_local, "streams", {})
    return streams.get(index) or default_stream(index)


def set_stream(stream) -> None:
    """Make `stream` current on its device (None: nothing changes)."""
    if stream is not None:
        _local.__dict__.setdefault("streams", {})[stream.device_index] = stream


def get_stream_from_external(data_ptr: int, device=None) -> Stream:
    """A stream made by another library."""
    return ExternalStream(data_ptr, device)


def synchronize(device=None) -> None:
    """Wait until the accelerator has done its work (on the host it is done when an operator returns)."""
    if device is not None:
        _accelerator.check_index(_accelerator.index_of(device))
    if not _accelerator.on_host():
        import mindspore

        mindspore.runtime.synchronize()
