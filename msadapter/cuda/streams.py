"""Streams and events. Operations run immediately and in order, so waiting does nothing. Measured times are real."""

import threading
import time

from .._host import accelerator as _accelerator

_local = threading.local()
_next_id = [1]


class Stream:
    """A queue of work, which is always complete."""

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
        """Makes later work wait for the event, which has already happened."""

    def wait_stream(self, stream) -> None:
        """Makes later work wait for the work of another stream, which is already complete."""

    def record_event(self, event=None):
        """Records an event in this stream and returns it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Returns True, because all work is complete."""
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
    """A stream that was created by another library."""

    def __new__(cls, stream_ptr, device=None, **kwargs):
        return super().__new__(cls, device=device, stream_id=stream_ptr, **kwargs)

    def __init__(self, stream_ptr, device=None, **kwargs):
        pass


class Event:
    """A point in a stream, which has a time with enable_timing."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False, device=None):
        self.enable_timing = enable_timing
        self._time = None

    @classmethod
    def from_ipc_handle(cls, device, handle):
        """Not supported: events cannot be shared between processes."""
        raise NotImplementedError("torch.cuda.Event.from_ipc_handle is not supported (docs/coverage.md)")

    def record(self, stream=None) -> None:
        """Records the current time."""
        synchronize()
        self._time = time.perf_counter()

    def wait(self, stream=None) -> None:
        """Makes a stream wait for this event, which has already happened."""

    def query(self) -> bool:
        """Returns True, because the work before the event is complete."""
        return True

    def synchronize(self) -> None:
        """Waits for the event, which has already happened."""

    def elapsed_time(self, end_event) -> float:
        """The milliseconds from this event to `end_event`."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._time is None or end_event._time is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return (end_event._time - self._time) * 1e3

    def __repr__(self):
        return f"<torch.cuda.Event recorded={self._time is not None}>"


class StreamContext:
    """The context manager of torch.cuda.stream, which makes a stream current in a block."""

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
    """A context manager that makes `stream` current in a block. None changes nothing."""
    return StreamContext(stream)


def default_stream(device=None) -> Stream:
    """The stream of a device that is current initially."""
    return Stream(device_index=_accelerator.index_of(device), stream_id=0)


def current_stream(device=None) -> Stream:
    """The current stream of a device in this thread."""
    index = _accelerator.index_of(device)
    streams = getattr(_local, "streams", {})
    return streams.get(index) or default_stream(index)


def set_stream(stream) -> None:
    """Makes `stream` current on its device. None changes nothing."""
    if stream is not None:
        _local.__dict__.setdefault("streams", {})[stream.device_index] = stream


def get_stream_from_external(data_ptr: int, device=None) -> Stream:
    """A stream from another library."""
    return ExternalStream(data_ptr, device)


def synchronize(device=None) -> None:
    """Waits until the accelerator has finished. On the host, the work is complete when an operator returns."""
    if device is not None:
        _accelerator.check_index(_accelerator.index_of(device))
    if not _accelerator.on_host():
        import mindspore

        mindspore.runtime.synchronize()
