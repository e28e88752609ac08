"""torch.cuda.nvtx: named ranges, which are recorded by a running torch.profiler."""

from contextlib import contextmanager

from ..profiler import record_function

_open: list = []
_started: dict = {}


def range_push(msg: str) -> int:
    """Opens a nested range and returns its depth."""
    entered = record_function(msg)
    entered.__enter__()
    _open.append(entered)
    return len(_open) - 1


def range_pop() -> int:
    """Closes the innermost range and returns its depth, or -1 if none is open."""
    if not _open:
        return -1
    _open.pop().__exit__(None, None, None)
    return len(_open)


def range_start(msg: str) -> int:
    """Opens a range that need not be nested, and returns the id for range_end."""
    entered = record_function(msg)
    entered.__enter__()
    _started[id(entered)] = entered
    return id(entered)


def range_end(range_id: int) -> None:
    """Closes a range of range_start."""
    entered = _started.pop(range_id, None)
    if entered is not None:
        entered.__exit__(None, None, None)


def mark(msg: str) -> None:
    """Records a point in time."""
    with record_function(msg):
        pass


@contextmanager
def range(msg, *args, **kwargs):
    """A context manager and decorator that records a range."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
