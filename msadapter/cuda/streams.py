"""Streams and events.

On an NPU they are those of MindSpore's runtime. On the host, operations run immediately and in order: all work
before a call is complete, so waiting does nothing. Measured times are real on both.
"""

import ctypes
import threading
import time

from .._errors import unsupported
from .._host import accelerator as _accelerator
from .._host.native import load
from ..tensor import device

_local = threading.local()
_next_id = [1]


class Stream:
    """A queue of work on the accelerator. Work of one stream runs in order.

    Args:
        device: the device, by default the current one.
        priority: 0, or a negative number for work that goes first.
    """

    def __new__(cls, device=None, priority=0, **kwargs):
        self = super().__new__(cls)
        self.device_index = kwargs.get("device_index", _accelerator.index_of(device))
        self.device_type = kwargs.get("device_type", 1)
        self.priority = priority
        self.stream_id = kwargs.get("stream_id")
        runtime = _accelerator.npu_runtime()
        if runtime is None:
            self._queue = None
            if self.stream_id is None:
                self.stream_id = _next_id[0]
                _next_id[0] += 1
        elif self.stream_id is None:
            self._queue = runtime.Stream(priority)
            self.stream_id = self._queue.id
        else:
            self._queue = runtime.Stream(priority, stream_id=self.stream_id)
        return self

    def __init__(self, device=None, priority=0, **kwargs):
        pass

    @property
    def device(self):
        return device(_accelerator.kind() or "cuda", self.device_index)

    @property
    def cuda_stream(self) -> int:
        return self.stream_id

    npu_stream = cuda_stream

    @property
    def _as_parameter_(self):
        return ctypes.c_void_p(self.stream_id)

    @classmethod
    def priority_range(cls):
        """(lowest, highest) priority."""
        return 0, -1

    def wait_event(self, event) -> None:
        """Make later work of this stream wait for the event."""
        event.wait(self)

    def wait_stream(self, stream) -> None:
        """Make later work of this stream wait for the work that another stream has now."""
        if self._queue is not None:
            self.wait_event(stream.record_event())

    def record_event(self, event=None):
        """Record an event in this stream and return it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def query(self) -> bool:
        """Return whether all work of this stream is complete. On the host it always is."""
        return self._queue is None or self._queue.query()

    def synchronize(self) -> None:
        """Wait for all work of this stream."""
        if self._queue is not None:
            self._queue.synchronize()

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
    """A stream that was created by another library. On the host it is a number that names no queue."""

    def __new__(cls, stream_ptr, device=None, **kwargs):
        if not _accelerator.on_host():
            raise unsupported(
                "torch.cuda.ExternalStream is not supported on an NPU", "MindSpore makes its streams itself"
            )
        return super().__new__(cls, device=device, stream_id=stream_ptr, **kwargs)

    def __init__(self, stream_ptr, device=None, **kwargs):
        pass


class Event:
    """A point in a stream, which has a time with enable_timing."""

    def __init__(self, enable_timing=False, blocking=False, interprocess=False, external=False, device=None):
        self.enable_timing = enable_timing
        self._time = None
        runtime = _accelerator.npu_runtime()
        self._point = None if runtime is None else runtime.Event(bool(enable_timing), bool(blocking))

    @classmethod
    def from_ipc_handle(cls, device, handle):
        """Not supported: events cannot be shared between processes."""
        raise unsupported("torch.cuda.Event.from_ipc_handle")

    def record(self, stream=None) -> None:
        """Record the event in a stream, by default the current one."""
        self._time = time.perf_counter()
        if self._point is not None:
            self._point.record((stream or current_stream())._queue)

    def wait(self, stream=None) -> None:
        """Make later work of a stream, by default the current one, wait for this event."""
        if self._point is not None and self._time is not None:
            self._point.wait((stream or current_stream())._queue)

    def query(self) -> bool:
        """Return whether the work before the event is complete. On the host it always is."""
        return self._point is None or self._time is None or self._point.query()

    def synchronize(self) -> None:
        """Wait for the work before the event."""
        if self._point is not None and self._time is not None:
            self._point.synchronize()

    def elapsed_time(self, end_event) -> float:
        """The milliseconds from this event to `end_event`."""
        if not (self.enable_timing and end_event.enable_timing):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._time is None or end_event._time is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if self._point is not None:
            return self._point.elapsed_time(end_event._point)
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
    if stream is None:
        return
    _local.__dict__.setdefault("streams", {})[stream.device_index] = stream
    runtime = _accelerator.npu_runtime()
    if runtime is not None:
        runtime.set_cur_stream(stream._queue)


def get_stream_from_external(data_ptr: int, device=None) -> Stream:
    """A stream from another library."""
    return ExternalStream(data_ptr, device)


def synchronize(device=None) -> None:
    """Wait until the accelerator has finished. On the host, the work is complete when an operator returns."""
    if device is not None:
        _accelerator.check_index(_accelerator.index_of(device))
    if not _accelerator.on_host():
        load().synchronise_device()
