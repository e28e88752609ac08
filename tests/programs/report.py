"""docs/programs.md, made of the rows that a run gives."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
RESULTS, PAGE = DOCS / "programs.json", DOCS / "programs.md"
GOOD = ("equal", "rounding", "runs")
SPEEDS = ("speed", "without start")
LEAST_SECONDS = 0.5  # of a run without its start, below which a ratio says nothing

HEAD = """# Ordinary programs

Written by `python -m tests.programs --torch-python PYTHON --sources FOLDER --packages FOLDER` from `docs/programs.json`; do not
edit by hand. Each row has the day on which it was measured.

Each program is run unmodified on tiny local data, once with PyTorch 2.13.0 and once with msadapter, with one thread. A row is
equal if the numbers that the program prints (losses, accuracies, gradient norms) differ by at most 1e-4 of max(1, size). The
difference is the largest one. "rounding": the program makes so much of the last bits that PyTorch differs from itself at least
as much when it has two threads or the instructions of an older processor. Each model of timm and of torchvision's classifiers, and
each trainer of trl, is judged by itself.

Some examples of pytorch/examples end at once where there are no accelerators, and most of them print no number. For both sides, a
driver puts the CPU in the place of the accelerators (`tests/programs/drivers/on_cpu.py`), and prints the norms of gradients and
parameters after each step.

Speed is PyTorch's CPU time divided by msadapter's, so more than 1 is faster than PyTorch. It is the median of some pairs of runs,
which alternate (`--pairs`), on a quiet machine. The first number is that of the whole process. Much of it is the start, because
the data are tiny, and msadapter starts faster. The second number is that of the rest: what an empty program takes that imports
torch and makes one step of Adam (`tests/programs/drivers/start.py`) is subtracted from both sides. It is left out where less than
{least} s remain on a side.

torchtitan is its release 0.2.2. Its newest head does not start. It asks for `DataParallelMeshDims`, and, itself and through its
package spmd_types, for private modules of PyTorch that msadapter does not have: `torch.distributed._local_tensor`, `_mesh_layout`,
`tensor._ops._view_ops` and `torch._functorch.partitioners`.

{equal} of {count} programs that run with PyTorch here and print numbers have PyTorch's numbers.{silent}

"""
SILENT = " {silent} more print none, and run to their end."


def _speeds(row: dict) -> tuple[str, str]:
    """Return the ratio of PyTorch's time to ours, with the start and without it, as text; "" for what was not measured."""
    if not row.get("seconds"):
        return "", ""
    whole = statistics.median(theirs / ours for theirs, ours in row["seconds"])
    rest = [
        [seconds - start for seconds, start in zip(pair, row["start"], strict=True)]
        for pair in row["seconds"]
    ]
    if min(map(min, rest)) < LEAST_SECONDS:
        return f"{whole:.2f}", ""
    return f"{whole:.2f}", f"{statistics.median(theirs / ours for theirs, ours in rest):.2f}"


def line(row: dict) -> str:
    """Return a row in one line, for the terminal."""
    gap = f", difference {row['difference']:.1e}" if "difference" in row else ""
    speed = "".join(f", {name} {text}" for name, text in zip(SPEEDS, _speeds(row), strict=True) if text)
    note = f": {row['note']}" if row["note"] else ""
    return f"{row['name']}: {row['verdict']}{gap}{speed}{note}"


def page(rows: list[dict]) -> str:
    """Return the page. Programs that PyTorch itself does not run on this machine are listed, and not counted."""
    counted = [row for row in rows if row["verdict"] != "not in PyTorch"]
    silent = sum(row["verdict"] == "runs" for row in counted)
    text = HEAD.format(
        least=LEAST_SECONDS,
        equal=sum(row["verdict"] in GOOD for row in counted) - silent,
        count=len(counted) - silent,
        silent=SILENT.format(silent=silent) if silent else "",
    )
    names = ["program", "result", "numbers", "difference", *SPEEDS, "measured", "note"]
    text += f"| {' | '.join(names)} |\n{'|---' * len(names)}|\n"
    for row in [one for program in rows for one in (program, *program.get("parts", ()))]:
        gap = f"{row['difference']:.1e}" if "difference" in row else ""
        note = row["note"].replace("|", "\\|")
        cells = [
            row["name"],
            row["verdict"],
            str(row.get("numbers", 0)),
            gap,
            *_speeds(row),
            row.get("date", ""),
            note,
        ]
        text += f"| {' | '.join(cells)} |\n"
    return text


def load() -> list[dict]:
    """Return the rows of docs/programs.json."""
    return json.loads(RESULTS.read_text(encoding="utf-8"))


def save(rows: list[dict]) -> None:
    """Write docs/programs.json, and the page from it."""
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(rows), encoding="utf-8")
