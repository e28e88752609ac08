"""torch.monitor: events and statistics of a program, and the handlers that receive them."""

from __future__ import annotations

import contextlib
import datetime
import enum
import threading
from collections.abc import Callable, Mapping, Sequence

STAT_EVENT = "torch.monitor.Stat"
data_value_t = str | float | int | bool

__all__ = [
    "STAT_EVENT",
    "Aggregation",
    "Event",
    "EventHandlerHandle",
    "Stat",
    "TensorboardEventHandler",
    "data_value_t",
    "log_event",
    "register_event_handler",
    "unregister_event_handler",
]


class Aggregation(enum.IntEnum):
    """What a Stat computes of the values that are added to it: the last one, their mean, number, sum, maximum, minimum."""

    VALUE = 0
    MEAN = 2
    COUNT = 3
    SUM = 4
    MAX = 5
    MIN = 6

    def __repr__(self) -> str:
        return f"<Aggregation.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"Aggregation.{self.name}"


class Event:
    """Something that has happened: a name, a time, and data by name, which are texts or numbers.

    Raises:
        TypeError: the time is none, or a value of the data is neither text nor number.
    """

    def __init__(self, name: str, timestamp: datetime.datetime, data: Mapping[str, data_value_t]):
        if not isinstance(timestamp, datetime.datetime):
            raise TypeError(f"torch.monitor.Event: timestamp is {timestamp!r}, not a datetime.datetime")
        self.name, self.timestamp = name, timestamp
        self.data = data

    @property
    def data(self) -> dict[str, data_value_t]:
        return self._data

    @data.setter
    def data(self, data: Mapping[str, data_value_t]) -> None:
        for key, value in data.items():
            if not isinstance(key, str) or not isinstance(value, (str, int, float)):
                raise TypeError(f"torch.monitor.Event: data[{key!r}] is {value!r}, neither text nor number")
        self._data = dict(data)


class EventHandlerHandle:
    """What ``register_event_handler`` returns, for ``unregister_event_handler``."""

    def __init__(self):
        raise TypeError("torch.monitor.EventHandlerHandle: No constructor defined!")


_lock = threading.RLock()
_handlers: dict[EventHandlerHandle, Callable[[Event], None]] = {}


def register_event_handler(callback: Callable[[Event], None]) -> EventHandlerHandle:
    """Call ``callback(event)`` for every event that is logged from now on."""
    handle = EventHandlerHandle.__new__(EventHandlerHandle)
    with _lock:
        _handlers[handle] = callback
    return handle


def unregister_event_handler(handler: EventHandlerHandle) -> None:
    """Do not call the callback of this handle any more. RuntimeError if it has been unregistered before."""
    with _lock:
        if _handlers.pop(handler, None) is None:
            raise RuntimeError("torch.monitor.unregister_event_handler: the handler is not registered")


def log_event(event: Event) -> None:
    """Give an event to every registered handler."""
    with _lock:
        callbacks = list(_handlers.values())
    for callback in callbacks:
        callback(event)


class Stat:
    """Statistics of numbers over windows of time. Each window that has numbers is logged as an event at its end.

    A window ends when ``window_size`` has passed, which is noticed at the next ``add``, or after ``max_samples`` numbers; further
    ones are then left out until the time has passed. ``get`` returns the statistics of the last window that has ended.
    """

    def __init__(
        self,
        name: str,
        aggregations: Sequence[Aggregation],
        window_size: datetime.timedelta,
        max_samples: int | None = None,
    ):
        self.name, self._aggregations = name, [Aggregation(a) for a in aggregations]
        if max_samples is not None and max_samples < 1:
            raise ValueError(f"torch.monitor.Stat: max_samples is {max_samples}, not at least 1")
        self._window, self._most = window_size // datetime.timedelta(milliseconds=1), max_samples
        if self._window < 1:
            raise ValueError("torch.monitor.Stat: window_size is less than a millisecond")
        self._lock = threading.RLock()
        self._numbers: list[float] = []
        self._last: dict[Aggregation, float] = dict.fromkeys(sorted(self._aggregations, reverse=True), 0.0)
        self._number, self._full = self._window_now(), False

    def _window_now(self) -> int:
        return int(datetime.datetime.now().timestamp() * 1000) // self._window

    @property
    def count(self) -> int:
        """The number of values in the present window."""
        return len(self._numbers)

    def add(self, v: float) -> None:
        """Add a number to the present window."""
        v = float(v)
        with self._lock:
            self._end_if_over()
            if self._full:
                return
            self._numbers.append(v)
            if len(self._numbers) == self._most:
                self._end()
                self._full = True

    def get(self) -> dict[Aggregation, float]:
        """Return the statistics of the last window."""
        return dict(self._last)

    def _end_if_over(self) -> None:
        now = self._window_now()
        if now != self._number:
            self._end()
            self._number, self._full = now, False

    def _end(self) -> None:
        numbers, self._numbers = self._numbers, []
        if not numbers:
            return
        total = sum(numbers)
        values = {
            Aggregation.VALUE: numbers[-1],
            Aggregation.MEAN: total / len(numbers),
            Aggregation.COUNT: float(len(numbers)),
            Aggregation.SUM: total,
            Aggregation.MAX: max(numbers),
            Aggregation.MIN: min(numbers),
        }
        self._last = {a: values[a] for a in self._last}
        data = {f"{self.name}.{a.name.lower()}": value for a, value in self._last.items()}
        log_event(Event(STAT_EVENT, datetime.datetime.now(), data))

    def __del__(self):
        with contextlib.suppress(AttributeError):  # the constructor has refused its arguments
            self._end()


class TensorboardEventHandler:
    """A handler that writes the events of ``Stat`` as scalars to a SummaryWriter."""

    def __init__(self, writer) -> None:
        self._writer = writer

    def __call__(self, event: Event) -> None:
        if event.name == STAT_EVENT:
            for name, value in event.data.items():
                self._writer.add_scalar(name, value, walltime=event.timestamp.timestamp())
