"""Measurements side by side in a table."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from typing import Any

from .common import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

__all__ = ["Colorize", "Compare"]

_BEST, _GOOD, _BAD, _WORST = "\033[92m\033[1m", "\033[34m\033[1m", "\033[2m\033[91m", "\033[31m\033[1m"
_PLAIN = "\033[0m\033[0m"
_SEPARATOR = "  |  "
_Group = dict[Any, Measurement]


class Colorize(enum.Enum):
    """What the colours of a table compare."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table for each label. Rows are the second labels, for each number of threads; columns are the descriptions."""

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self._trim = False
        self._colorize = Colorize.NONE
        self._highlight = False
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements."""
        found = list(results)
        for one in found:
            if not isinstance(one, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(one)} instead.")
        self._results += found

    def trim_significant_figures(self) -> None:
        """From now on, times have only the digits that mean something."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """From now on, colours compare the times of a column, or of a row."""
        self._colorize = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """From now on, times that vary much are marked."""
        self._highlight = True

    def print(self) -> None:
        """Prints the tables."""
        print(self)

    def __str__(self) -> str:
        labels: dict[str | None, list[Measurement]] = {}
        for one in Measurement.merge(self._results):
            labels.setdefault(one.label, []).append(one)
        tables = [_Table(group, self._trim, self._colorize, self._highlight) for group in labels.values()]
        return "\n".join(table.text() for table in tables)


class _Table:
    """The measurements of one label."""

    def __init__(self, results: list[Measurement], trim: bool, colorize: Colorize, highlight: bool) -> None:
        self.results, self.trim, self.colorize, self.highlight = results, trim, colorize, highlight
        self.unit, self.scale = select_unit(min(one.median for one in results))
        rows = ordered_unique([(one.num_threads, one.env, one.as_row_name) for one in results])
        self.rows = sorted(rows, key=lambda row: row[:2])
        self.columns = ordered_unique([one.description for one in results])
        self.cells = {(one.num_threads, one.env, one.as_row_name, one.description): one for one in results}
        self.formats = [self._format(column) for column in self.columns]

    def _of(self, column: str | None, threads: int | None = None) -> list[Measurement]:
        rows = [row for row in self.rows if threads is None or row[0] == threads]
        return [self.cells[(*row, column)] for row in rows if (*row, column) in self.cells]

    def _format(self, column: str | None) -> tuple[str, bool]:
        """How the numbers of a column are written, and whether some of them are marked."""
        found = self._of(column)
        digits = [math.ceil(math.log10(one.median / self.scale)) for one in found]
        decimals = 1
        if self.trim:
            decimals = min(
                max(one.significant_figures - own, 0) for own, one in zip(digits, found, strict=True)
            )
        marked = self.highlight and any(one.has_warnings for one in found)
        width = max(digits) + decimals + (1 if decimals else 0)
        return f"{{:>{width}.{decimals}f}}{{:>{7 if marked else 0}}}", marked

    def _number(self, one: Measurement | None, number: int) -> str:
        """A time as it is written in its column."""
        template, marked = self.formats[number]
        if one is None:
            return " " * len(template.format(trim_sigfig(1, 1) if self.trim else 1, ""))
        value = one.median / self.scale
        if self.trim:
            value = trim_sigfig(value, one.significant_figures)
        mark = f" (! {one.iqr / one.median * 100:.0f}%)" if marked and one.has_warnings else ""
        return template.format(value, mark)

    def _names(self) -> list[str]:
        """The names of the rows. The environment is written where it changes, if there are several."""
        several = len({env for _, env, _ in self.rows}) > 1
        width = max(len(str(env)) for _, env, _ in self.rows) + 4 if several else 4
        found, before = [], None
        for threads, env, name in self.rows:
            shown = f"({env})" if several and (threads, env) != before else ""
            found.append("  " + shown.ljust(width) + name)
            before = (threads, env)
        return found

    def text(self) -> str:
        numbers = [
            [self._number(self.cells.get((*row, column)), place) for place, column in enumerate(self.columns)]
            for row in self.rows
        ]
        head = ["", *(column or "" for column in self.columns)]
        lines = [[name, *cells] for name, cells in zip(self._names(), numbers, strict=True)]
        widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
        first = _SEPARATOR.join(cell.center(width) for cell, width in zip(head, widths, strict=True))
        out = [f"[{(' ' + (self.results[0].label or '') + ' ').center(len(first) - 2, '-')}]", first]
        threads = None
        for row, line in zip(self.rows, lines, strict=True):
            if row[0] != threads:
                threads = row[0]
                out.append(f"{threads} threads: ".ljust(len(first), "-"))
            out.append(_SEPARATOR.join(self._coloured(row, line, widths)))
        out += ["", f"Times are in {unit_to_english(self.unit)}s ({self.unit}).", ""]
        if self.highlight and any(one.has_warnings for one in self.results):
            out[-1] = "(! XX%) Measurement has high variance, where XX is the IQR / median * 100."
            out.append("")
        return "\n".join(out)

    def _coloured(self, row: tuple[Any, ...], line: Sequence[str], widths: Sequence[int]) -> list[str]:
        found = [line[0].ljust(widths[0])]
        own = [self.cells.get((*row, column)) for column in self.columns]
        for place, column in enumerate(self.columns):
            cell, one = line[place + 1].center(widths[place + 1]), own[place]
            if self.colorize != Colorize.NONE and one is not None:
                others = own if self.colorize == Colorize.ROWWISE else self._of(column, row[0])
                cell = _painted(cell, one.median, min(other.median for other in others if other is not None))
            found.append(cell)
        return found


def _painted(cell: str, time: float, best: float) -> str:
    """The cell in the colour of its distance from the best."""
    if time <= best * 1.01 or time <= best + 100e-9:
        return _BEST + cell + _PLAIN
    if time <= best * 1.1:
        return _GOOD + cell + _PLAIN
    if time >= best * 5:
        return _WORST + cell + _PLAIN
    return _BAD + cell + _PLAIN if time >= best * 2 else cell
