"""A timer of statements, like Python's timeit, which knows threads and accelerators."""

from __future__ import annotations

import enum
import statistics
import textwrap
import timeit
from collections.abc import Callable
from typing import Any, NoReturn

import msadapter

from .... import accelerator
from ...._errors import unsupported
from .common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]

_MOST_RUNS = 2147483647  # runs in one measurement
_WARMED_BY = 100  # a hundredth of the runs come before a measurement
_NEGLIGIBLE = 1e-4  # of the clock in the time of a block


def timer() -> float:
    """The present time in seconds, when what an accelerator was given is done."""
    if accelerator.is_available():
        accelerator.synchronize()
    return timeit.default_timer()


class Language(enum.Enum):
    """The language of a statement."""

    PYTHON = 0
    CPP = 1


def _dedented(code: str) -> str:
    """The code without common indentation, and without the line break that a block string begins with."""
    return textwrap.dedent(code).removeprefix("\n").rstrip()


class Timer:
    """Measures a statement of Python.

    ``setup`` runs before each measurement. ``globals`` are the names that both see, beside ``torch``. ``label``,
    ``sub_label``, ``description`` and ``env`` place the result in the tables of :class:`Compare`. ``num_threads`` is one
    unless given. Statements of C++ raise NotImplementedError.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise unsupported("torch.utils.benchmark.Timer", "statements of C++ are not supported")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most "
                "likely this code can simply be moved to `setup`."
            )
        stmt, setup = _dedented(stmt), _dedented(setup)
        self._timer = timeit.Timer(stmt, setup, timer, {"torch": msadapter, **(globals or {})})
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)  # a clock that stands still would be divided by

    def timeit(self, number: int = 1000000) -> Measurement:
        """One measurement of ``number`` runs, after some that are not measured."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // _WARMED_BY, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """PyTorch's timer does not have it: blocked_autorange chooses both numbers."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], NoReturn] | None = None) -> None:
        """PyTorch's timer does not have it."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block(self, shortest: float) -> int:
        """Runs for which the clock costs almost nothing. Finding the number also warms up."""
        clock = statistics.median(self._timeit(0) for _ in range(5))
        number = 1
        while number * 10 <= _MOST_RUNS:
            taken = self._timeit(number)
            if taken > shortest or (clock / taken <= _NEGLIGIBLE and taken >= shortest / 1000):
                break
            number *= 10
        return number

    def blocked_autorange(
        self, callback: Callable[[int, float], NoReturn] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measures blocks of runs for ``min_run_time`` seconds. The size of a block makes the cost of the clock negligible.

        ``callback`` gets the runs and the seconds of each block.
        """
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(min_run_time)
            times = self._measure(number, callback, min_run_time, None, lambda found: True)
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], NoReturn] | None = None,
    ) -> Measurement:
        """Measures until the interquartile range is below ``threshold`` of the median, or ``max_run_time`` seconds are over."""

        def settled(found: list[float]) -> bool:
            return len(found) > 3 and Measurement(number, found, self._task_spec).meets_confidence(threshold)

        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(0.05)
            times = self._measure(number, callback, min_run_time, max_run_time, settled)
        return Measurement(number, times, self._task_spec)

    def _measure(
        self,
        number: int,
        callback: Callable[[int, float], NoReturn] | None,
        shortest: float,
        longest: float | None,
        enough: Callable[[list[float]], bool],
    ) -> list[float]:
        """The times of blocks, until the shortest time is over and they are enough, or the longest time is over."""
        times: list[float] = []
        while not times or sum(times) < shortest or not enough(times):
            times.append(self._timeit(number))
            if callback is not None:
                callback(number, times[-1])
            if longest and sum(times) > longest:
                break
        return times

    def collect_callgrind(self, *arguments: Any, **options: Any) -> NoReturn:
        """Counts of instructions by Valgrind are not supported."""
        raise unsupported("torch.utils.benchmark.Timer.collect_callgrind")
