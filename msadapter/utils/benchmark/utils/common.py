"""Measurements of statements: their times, and what can be said of them."""

from __future__ import annotations

import contextlib
import math
import statistics
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy

from .... import get_num_threads, set_num_threads

__all__ = [
    "Measurement",
    "TaskSpec",
    "ordered_unique",
    "select_unit",
    "set_torch_threads",
    "trim_sigfig",
    "unit_to_english",
]

_MOST_FIGURES = 4
_FINEST = 25e-9  # seconds; a clock says nothing below
_LOOSE, _WILD = 0.1, 0.25  # interquartile ranges, as parts of the median, that are warned of
_UNITS = {
    "ns": (1e-9, "nanosecond"),
    "us": (1e-6, "microsecond"),
    "ms": (1e-3, "millisecond"),
    "s": (1, "second"),
}


@dataclass(frozen=True, repr=False)
class TaskSpec:
    """What a Timer was asked to measure, without its globals."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or else the statement, with the second label."""
        if self.label is None and "\n" in self.stmt:
            head = f"stmt: ({self.sub_label})" if self.sub_label else "stmt:"
            return f"{head}\n{textwrap.indent(self.stmt, '  ')}"
        name = self.stmt if self.label is None else self.label
        return f"{name}: {self.sub_label}" if self.sub_label else name

    def setup_str(self) -> str:
        """The statement that is run before, in words; empty if there is none."""
        if not self.setup or self.setup == "pass":
            return ""
        if "\n" in self.setup:
            return f"setup:\n{textwrap.indent(self.setup, '  ')}"
        return f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and set-up. A part of several lines is followed by an empty one."""
        parts = [part for part in (self.title, self.description, self.setup_str()) if part]
        return "\n".join(part + "\n" if "\n" in part else part for part in parts)


_FIELDS = frozenset(field.name for field in fields(TaskSpec))


@dataclass(repr=False)
class Measurement:
    """Times of one task, each of ``number_per_run`` runs of the statement, in seconds.

    The fields of the task are attributes too.
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in _FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @property
    def times(self) -> list[float]:
        """Seconds of one run of the statement."""
        return [time / self.number_per_run for time in self.raw_times]

    def _quantile(self, part: float) -> float:
        """By linear interpolation, like torch.quantile; -1 without times."""
        times = sorted(self.times)
        if not times:
            return -1.0
        place = part * (len(times) - 1)
        below = math.floor(place)
        above = min(below + 1, len(times) - 1)
        return times[below] + (times[above] - times[below]) * (place - below)

    @property
    def median(self) -> float:
        """Seconds."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """Seconds."""
        return statistics.fmean(self.times) if self.raw_times else -1.0

    @property
    def iqr(self) -> float:
        """The distance of the quartiles, in seconds."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """About how many digits of the median mean something, from 1 to 4.

        The times between the quartiles give a confidence interval of 90 %, as if they were distributed normally.
        """
        times = sorted(self.times)
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        interval = max(1.645 * statistics.pstdev(middle) / math.sqrt(len(middle)), _FINEST)
        return min(max(math.floor(math.log10(self.median / interval)), 1), _MOST_FIGURES)

    def meets_confidence(self, threshold: float = _LOOSE) -> bool:
        """Whether the interquartile range is smaller than this part of the median."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary more than usual."""
        return self._warning() is not None

    def _warning(self) -> str | None:
        if not self.raw_times or self.meets_confidence(_LOOSE):
            return None
        cause = (
            "could indicate system fluctuation"
            if self.meets_confidence(_WILD)
            else "suggests significant environmental influence"
        )
        return (
            f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of the median measurement.\n"
            f"           This {cause}."
        )

    @property
    def title(self) -> str:
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """The name of the row in a table."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        count = len(self.raw_times)
        several = count > 1
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if several else ''}{self.median / scale:.2f} {unit}")
        if count >= 4:
            low, high = (self._quantile(part) / scale for part in (0.25, 0.75))
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        runs = f"{self.number_per_run} runs {'per measurement,' if several else ','}"
        threads = f"{self.num_threads} thread{'s' if self.num_threads > 1 else ''}"
        lines.append(f"  {count} measurement{'s' if several else ''}, {runs} {threads}")
        return "\n".join([*lines, *filter(None, [self._warning()])])

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task, with the times of one run. Payloads in ``metadata`` are dropped."""
        tasks: dict[TaskSpec, list[float]] = {}
        for one in measurements:
            tasks.setdefault(one.task_spec, []).extend(one.times)
        return [Measurement(1, times, task) for task, times in tasks.items()]


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time is written (ns, us, ms or s), and its seconds."""
    power = math.log10(t) // 3 if t > 0 else 0
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(int(power), "s")
    return unit, _UNITS[unit][0]


def unit_to_english(u: str) -> str:
    """The name of a unit of time."""
    return _UNITS[u][1]


def trim_sigfig(x: float, n: int) -> float:
    """``x`` with ``n`` significant figures, computed in float32 as PyTorch does: 3.14159 and 2 give about 3.1."""
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10 ** (math.ceil(math.log10(abs(x))) - n)
    return float(numpy.float32(x / scale).round() * numpy.float32(scale))


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The elements without repetitions, in the order of their first occurrence."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Computes with ``n`` threads, and with as many as before afterwards."""
    before = get_num_threads()
    set_num_threads(n)
    try:
        yield
    finally:
        set_num_threads(before)
