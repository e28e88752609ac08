"""Named ranges of time. They are stored only while a profiler is recording."""

import functools
import threading
import time

recorders: list = []  # the recording profilers; each has add(name, args, start_ns, end_ns, thread)


thread = threading.get_ident  # the same id as in the ranges of operators


class record_function:
    """A context manager and decorator that adds a named range to the trace of a running profiler."""

    __slots__ = ("name", "args", "_start")

    def __init__(self, name: str, args: str | None = None):
        self.name = name
        self.args = args
        self._start = 0

    def __enter__(self):
        if recorders:
            self._start = time.perf_counter_ns()
        return self

    def __exit__(self, *exc):
        if recorders and self._start:
            end = time.perf_counter_ns()
            for recorder in recorders:
                recorder.add(self.name, self.args, self._start, end, thread())

    def __call__(self, func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            with record_function(self.name, self.args):
                return func(*args, **kwargs)

        return wrapper


def enter_range(name: str, args: str | None = None) -> record_function:
    """Begin a named range. The result ends it (torch.ops.profiler._record_function_enter)."""
    return record_function(name, args).__enter__()


def exit_range(handle: record_function) -> None:
    """End the range that ``enter_range`` has begun."""
    handle.__exit__(None, None, None)
