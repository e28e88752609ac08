"""docs/programs.md, made of the rows that a run gives."""

from __future__ import annotations

import datetime

GOOD = ("equal", "rounding", "runs")

HEAD = """# Ordinary programs

Written by `python -m tests.programs --torch-python PYTHON --sources FOLDER --packages FOLDER --table docs/programs.md`;
do not edit by hand. Date: {date}.

Each program is run unmodified on tiny local data, once with PyTorch 2.13.0 and once with msadapter, with one thread. A row is
equal if the numbers that the program prints (losses, accuracies, gradient norms) differ by at most 1e-4 of max(1, size). The
difference is the largest one. "rounding": the program makes so much of the last bits that PyTorch differs from itself at least
as much when it has two threads or the instructions of an older processor. Each model of timm and of torchvision's classifiers is
judged by itself.{speed}

{equal} of {count} programs that run with PyTorch here and print numbers have PyTorch's numbers.{silent}

"""
SILENT = " {silent} more print none, and run to their end."
SPEED = " Speed is PyTorch's time divided by msadapter's, for the whole process, its start included."


def _speed(row: dict) -> str:
    if row["verdict"] not in (*GOOD, "differs") or "seconds" not in row:
        return ""
    return f"{row['torch_seconds'] / row['seconds']:.2f}"


def line(row: dict) -> str:
    """Return a row in one line, for the terminal."""
    gap = f", difference {row['difference']:.1e}" if "difference" in row else ""
    speed = f", speed {_speed(row)}" if _speed(row) else ""
    note = f": {row['note']}" if row["note"] else ""
    return f"{row['name']}: {row['verdict']}{gap}{speed}{note}"


def page(rows: list[dict], speed: bool = True) -> str:
    """Return the page. Programs that PyTorch itself does not run on this machine are listed, and not counted."""
    counted = [row for row in rows if row["verdict"] != "not in PyTorch"]
    silent = sum(row["verdict"] == "runs" for row in counted)
    text = HEAD.format(
        date=datetime.date.today().isoformat(),
        equal=sum(row["verdict"] in GOOD for row in counted) - silent,
        count=len(counted) - silent,
        silent=SILENT.format(silent=silent) if silent else "",
        speed=SPEED if speed else "",
    )
    names = ["program", "result", "numbers", "difference", *(["speed"] if speed else []), "note"]
    text += f"| {' | '.join(names)} |\n{'|---' * len(names)}|\n"
    for row in [one for program in rows for one in (program, *program.get("parts", ()))]:
        gap = f"{row['difference']:.1e}" if "difference" in row else ""
        cells = [
            row["name"],
            row["verdict"],
            str(row.get("numbers", 0)),
            gap,
            *([_speed(row)] if speed else []),
        ]
        text += f"| {' | '.join([*cells, row['note'].replace('|', chr(92) + '|')])} |\n"
    return text
