"""The traces of a run, which torch.profiler writes for Chrome, as a table of operators."""

from __future__ import annotations

import collections
import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import UserError

ENDINGS = ("*.pt.trace.json", "*.pt.trace.json.gz")


@dataclass
class Row:
    """An operator: how often it was called, and its microseconds with and without what it calls."""

    calls: int = 0
    whole: float = 0.0
    own: float = 0.0


def files(folder: Path) -> list[Path]:
    """The traces of a run's folder, wherever the program wrote them."""
    return sorted(file for ending in ENDINGS for file in folder.rglob(ending))


def operators(file: Path) -> dict[str, Row]:
    """Name -> row, for the operators of a trace.

    Raises:
        UserError: the file is not a trace.
    """
    try:
        raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        events = json.loads(raw)["traceEvents"]
        timed = [one for one in events if one.get("ph") == "X" and one.get("cat") == "cpu_op"]
        lanes: dict[Any, list[tuple[float, float, str]]] = collections.defaultdict(list)
        for one in timed:
            lanes[one.get("pid"), one.get("tid")].append(
                (float(one["ts"]), float(one["dur"]), str(one["name"]))
            )
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{file}: is not a trace of torch.profiler: {error!r}") from None
    found: dict[str, Row] = collections.defaultdict(Row)
    for lane in lanes.values():
        open_calls: list[tuple[float, str]] = []  # ends and names of the calls around the present one
        for start, length, name in sorted(lane, key=lambda one: (one[0], -one[1])):
            while open_calls and open_calls[-1][0] <= start:
                open_calls.pop()
            row = found[name]
            row.calls, row.whole, row.own = row.calls + 1, row.whole + length, row.own + length
            if open_calls:
                found[open_calls[-1][1]].own -= length
            open_calls.append((start + length, name))
    return dict(found)


def table(file: Path, most: int = 15) -> str:
    """The operators that take the most time by themselves."""
    rows = operators(file)
    total = sum(row.own for row in rows.values()) or 1.0
    lines = [f"{'operator':<52}{'calls':>7}{'own ms':>11}{'share':>8}{'whole ms':>11}"]
    for name, row in sorted(rows.items(), key=lambda item: -item[1].own)[:most]:
        shown = name if len(name) < 52 else f"{name[:48]}..."
        lines.append(
            f"{shown:<52}{row.calls:>7}{row.own / 1e3:>11.2f}{row.own / total:>8.1%}{row.whole / 1e3:>11.2f}"
        )
    return "\n".join(lines)
