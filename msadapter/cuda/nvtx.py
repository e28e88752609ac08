"""Ranges for profilers: they go to torch.profiler's recording if one is running."""

from contextlib import contextmanager

from ..profiler import record_function

_open: list = []
_started: dict = {}


def range_push(msg: str) -> int:
    """Open a nested range; its depth."""
    entered = record_function(msg)
    entered.__enter__()
    _open.append(entered)
    return len(_open) - 1


def range_pop() -> int:
    """Close the innermost range; its depth, or -1 if none is open."""
    if not _open:
        return -1
    _open.pop().__exit__(None, None, None)
    return len(_open)


def range_start(msg: str) -> int:
    """Open a range that need not nest; the id for range_end."""
    entered = record_function(msg)
    entered.__enter__()
    _started[id(entered)] = entered
    return id(entered)


def range_end(range_id: int) -> None:
    """Close the range of range_start."""
    entered = _started.pop(range_id, None)
    if entered is not None:
        entered.__exit__(None, None, None)


def mark(msg: str) -> None:
    """A moment."""
    with record_function(msg):
        pass


@contextmanager
def range(msg, *args, **kwargs):
    """A range for a block or a function."""
    range_push(msg.format(*args, **kwargs))
    try:
        yield
    finally:
        range_pop()
