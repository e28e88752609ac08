"""The time that this rank spends in collectives and messages. What is left of a step is its own work.

The methods of the process groups' backends and of Work are wrapped, so it does not matter which function of torch.distributed was
called, or who has copied it. A call inside of another one counts once. Threads other than the main one are not counted.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any

_METHODS = (
    "allreduce",
    "allgather",
    "allgather_into",
    "alltoall",
    "alltoall_single",
    "barrier",
    "broadcast",
    "gather",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_into",
    "scatter",
    "send",
)


class Waiting:
    """Adds up the seconds of the wrapped calls of the main thread. inside: whether it is in such a call now."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.seconds = 0.0
        self.inside = False

    def install(self, backend: type, work: type) -> None:
        """Wraps the methods of the class of a backend with its bases, and of all kinds of Work."""
        for kind in backend.__mro__[:-1]:
            for name in _METHODS:
                if name in vars(kind):
                    setattr(kind, name, self.timed(vars(kind)[name]))
        for kind in _kinds(work):
            if "wait" in vars(kind):
                setattr(kind, "wait", self.timed(vars(kind)["wait"]))  # noqa: B010  (mypy knows no such assignment)

    def timed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its time added."""

        @functools.wraps(function)
        def around(*arguments: Any, **named: Any) -> Any:
            if self.inside or threading.current_thread() is not threading.main_thread():
                return function(*arguments, **named)
            self.inside, began = True, self.clock()
            try:
                return function(*arguments, **named)
            finally:
                self.inside = False
                self.seconds += self.clock() - began

        return around


def _kinds(kind: type) -> list[type]:
    found = [kind]
    below: type
    for below in kind.__subclasses__():
        found += _kinds(below)
    return found
