"""torch.npu.mstx: named ranges and marks in the profiler's recording."""

from __future__ import annotations

import itertools

from ..profiler import record_function

_open: dict[int, record_function] = {}
_next = itertools.count(1)


def mark(message: str, stream=None, domain: str = "default") -> None:
    """Records a point in time."""
    with record_function(message):
        pass


def range_start(message: str, stream=None, domain: str = "default") -> int:
    """Begins a range and returns its number for range_end."""
    number = next(_next)
    _open[number] = record_function(message)
    _open[number].__enter__()
    return number


def range_end(range_id: int, domain: str = "default") -> None:
    """Ends a range. An unknown number changes nothing."""
    found = _open.pop(range_id, None)
    if found is not None:
        found.__exit__(None, None, None)
