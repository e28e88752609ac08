"""Runs ordinary programs with PyTorch and with msadapter, and writes what came out.

    python -m tests.programs --torch-python PYTHON --sources FOLDER [--packages FOLDER] [--only TEXT ...] [--resume FILE]
                             [--table docs/programs.md] [--least SHARE]

FOLDER of --sources holds clones of github.com/pytorch/examples, karpathy/nanoGPT, karpathy/minGPT, johnma2006/mamba-minimal and
facebookresearch/segment-anything. --packages is a folder that `pip install --no-deps --target FOLDER` filled, for both
interpreters.
Nothing is downloaded. The exit code is 0 if at least the share --least of the programs that PyTorch runs here is equal.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace
from pathlib import Path

from . import report
from .catalogue import PROGRAMS
from .run import VARIANTS, Side, difference, missing, run


def _judge(program, ours, theirs) -> dict:
    row = {
        "name": program.name,
        "seconds": ours.seconds,
        "torch_seconds": theirs.seconds,
        "numbers": len(theirs.numbers),
    }
    if theirs.error:
        return row | {"verdict": "not in PyTorch", "note": theirs.error}
    if ours.error:
        return row | {"verdict": "fails", "note": ours.error}
    gap = difference(ours.numbers, theirs.numbers)
    if not theirs.numbers:
        return row | {"verdict": "runs", "note": "prints no numbers"}
    if gap == float("inf"):
        note = f"{len(ours.numbers)} numbers instead of {len(theirs.numbers)}"
        return row | {"verdict": "differs", "note": note}
    verdict = "equal" if gap <= program.tolerance else "differs"
    return row | {"verdict": verdict, "difference": gap, "note": ""}


def _with_noise(program, row: dict, theirs, side: Side, sources: Path) -> dict:
    """Ask how much PyTorch differs from itself, where a program makes much of the last bits.

    A difference that is not larger than PyTorch's own is called rounding.
    """
    noise = 0.0
    for variant in VARIANTS:
        again = run(program, replace(side, extra=variant), sources)
        if not again.error:
            noise = max(noise, difference(again.numbers, theirs.numbers))
    verdict = "rounding" if row["difference"] <= noise else "differs"
    return row | {"verdict": verdict, "note": f"PyTorch itself differs by {noise:.1e}"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.programs", description=__doc__.partition("\n")[0])
    parser.add_argument("--torch-python", required=True, metavar="PYTHON", help="a Python with PyTorch 2.13")
    parser.add_argument(
        "--sources", required=True, type=Path, metavar="FOLDER", help="the folder with the clones"
    )
    parser.add_argument(
        "--packages", default="", metavar="FOLDER", help="a folder of packages for both interpreters"
    )
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="TEXT", help="programs whose name contains one of these"
    )
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="rows are kept in this JSON file and not run again"
    )
    parser.add_argument("--table", type=Path, metavar="FILE", help="write the page here")
    parser.add_argument(
        "--without-speed", action="store_true", help="leave the times out: the machine is shared"
    )
    parser.add_argument(
        "--least", type=float, default=1.0, metavar="SHARE", help="of the programs that must be equal"
    )
    options = parser.parse_args()
    chosen = [p for p in PROGRAMS if not options.only or any(text in p.name for text in options.only)]
    if not chosen:
        parser.error(f"no program has one of {options.only} in its name")
    rows = {}
    if options.resume is not None and options.resume.exists():
        rows = {row["name"]: row for row in json.loads(options.resume.read_text())}
    sides = Side(sys.executable, True, options.packages), Side(options.torch_python, False, options.packages)
    for number, program in enumerate(chosen, 1):
        if program.name in rows:
            continue
        lacking = next((text for side in sides if (text := missing(program, options.sources, side))), "")
        if lacking:
            row = {"name": program.name, "verdict": "not run", "note": lacking}
        else:
            theirs, ours = (run(program, side, options.sources) for side in reversed(sides))
            row = _judge(program, ours, theirs)
            if row["verdict"] == "differs" and "difference" in row:
                row = _with_noise(program, row, theirs, sides[1], options.sources)
        print(f"[{number}/{len(chosen)}] {report.line(row)}", flush=True)
        if row["verdict"] != "not run":
            rows[program.name] = row
        if options.resume is not None:
            options.resume.write_text(json.dumps(list(rows.values()), indent=1) + "\n")
    known = [rows[p.name] for p in chosen if p.name in rows]
    if options.table is not None:
        options.table.write_text(report.page(known, not options.without_speed))
    counted = [row for row in known if row["verdict"] != "not in PyTorch"]
    equal = sum(row["verdict"] in report.GOOD for row in counted)
    print(f"{equal} of {len(counted)} programs equal")
    return 0 if counted and equal >= options.least * len(counted) else 1


if __name__ == "__main__":
    sys.exit(main())
