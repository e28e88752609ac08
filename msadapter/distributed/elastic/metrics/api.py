"""Numbers that a program measures, with a handler for each group of them."""

from __future__ import annotations

import abc
import functools
import time
import warnings
from typing import NamedTuple

__all__ = [
    "ConsoleMetricHandler",
    "MetricData",
    "MetricHandler",
    "MetricStream",
    "MetricsConfig",
    "NullMetricHandler",
    "configure",
    "getStream",
    "get_elapsed_time_ms",
    "prof",
    "profile",
    "publish_metric",
    "put_metric",
]


class MetricData(NamedTuple):
    """One number: when it was measured, in seconds since 1970, its group, its name and its value."""

    timestamp: float
    group_name: str
    name: str
    value: int


class MetricsConfig:
    """Settings by name."""

    __slots__ = ["params"]

    def __init__(self, params: dict[str, str] | None = None):
        self.params = {} if params is None else params


class MetricHandler(abc.ABC):
    """Takes numbers to where they are kept. A program derives its own handlers from it."""

    @abc.abstractmethod
    def emit(self, metric_data: MetricData) -> None:
        """Called for each number."""


class ConsoleMetricHandler(MetricHandler):
    """Prints each number."""

    def emit(self, metric_data: MetricData) -> None:
        print(f"[{metric_data.timestamp}][{metric_data.group_name}]: {metric_data.name}={metric_data.value}")


class NullMetricHandler(MetricHandler):
    """Drops the numbers."""

    def emit(self, metric_data: MetricData) -> None:
        pass


class MetricStream:
    """The numbers of one group."""

    def __init__(self, group_name: str, handler: MetricHandler):
        self.group_name, self.handler = group_name, handler

    def add_value(self, metric_name: str, metric_value: int) -> None:
        """Hands a number to the handler, with the time."""
        self.handler.emit(MetricData(time.time(), self.group_name, metric_name, metric_value))


_metrics_map: dict[str, MetricHandler] = {}
_default_metrics_handler: MetricHandler = NullMetricHandler()


def configure(handler: MetricHandler, group: str | None = None) -> None:
    """Sets the handler of a group, or of all groups that have none."""
    global _default_metrics_handler
    if group is None:
        _default_metrics_handler = handler
    else:
        _metrics_map[group] = handler


def getStream(group: str) -> MetricStream:
    """The stream of a group, with the handler that the group has now."""
    return MetricStream(group, _metrics_map.get(group, _default_metrics_handler))


def put_metric(metric_name: str, metric_value: int, metric_group: str = "torchelastic") -> None:
    """Hands a number to the handler of its group."""
    getStream(metric_group).add_value(metric_name, metric_value)


def _get_metric_name(fn) -> str:
    """The qualified name of a function. A function of a module has the last part of the module's name before it."""
    name, module = fn.__qualname__, fn.__module__
    return name if "." in name or not module else f"{module.rpartition('.')[2]}.{name}"


def get_elapsed_time_ms(start_time_in_seconds: float) -> int:
    """The milliseconds since a time of `time.time()`."""
    return int((time.time() - start_time_in_seconds) * 1000)


def _measured(fn, key: str, group: str):
    """The function, with numbers on each call: KEY.success or KEY.failure is 1, KEY.duration.ms its time."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        start = time.time()
        try:
            result = fn(*args, **kwargs)
            put_metric(f"{key}.success", 1, group)
        except Exception:
            put_metric(f"{key}.failure", 1, group)
            raise
        finally:
            put_metric(f"{key}.duration.ms", get_elapsed_time_ms(start), group)
        return result

    return wrapper


def prof(fn=None, group: str = "torchelastic"):
    """Decorates a function, so that each call gives numbers: whether it succeeded, and how long it took.

    Their names begin with the function's qualified name. Both ``@prof`` and ``@prof(group="mine")`` are possible.
    """

    def wrap(f):
        return _measured(f, _get_metric_name(f), group)

    return wrap(fn) if fn else wrap


def profile(group=None):
    """Decorates a function like `prof`, which replaces it. The names begin with the function's plain name."""
    warnings.warn("Deprecated, use `@prof` instead", FutureWarning, stacklevel=2)

    def wrap(func):
        return _measured(func, func.__name__, group)

    return wrap


def publish_metric(metric_group: str, metric_name: str, metric_value: int) -> None:
    """Does what `put_metric` does, which replaces it."""
    text = "Deprecated, use `put_metric(metric_group)(metric_name, metric_value)` instead"
    warnings.warn(text, FutureWarning, stacklevel=2)
    put_metric(metric_name, metric_value, metric_group)
