"""Runs ordinary programs with PyTorch and with msadapter, and writes what came out to docs/programs.json and docs/programs.md.

    python -m tests.programs --torch-python PYTHON --sources FOLDER [--packages FOLDER] [--only TEXT ...] [--pairs NUMBER]
                             [--speed-alone] [--least SHARE]

FOLDER of --sources holds clones of these repositories of github.com, each in a folder of its name: pytorch/examples,
karpathy/nanoGPT, karpathy/minGPT, karpathy/llm.c, karpathy/nanochat, KellerJordan/modded-nanogpt, johnma2006/mamba-minimal,
facebookresearch/segment-anything, facebookresearch/detr, kuangliu/pytorch-cifar, lucidrains/x-transformers,
lucidrains/denoising-diffusion-pytorch, eriklindernoren/PyTorch-GAN, vwxyzjn/cleanrl, openai/whisper, and pytorch/torchtitan at
v0.2.2. --packages is a folder that `pip install --no-deps --target FOLDER` filled, for both interpreters; its name is
site-packages, because dill, with which datasets makes its hashes, would take other folders for the user's own code. Nothing is
downloaded. Rows of programs that are not run stay as they are. The exit code is 0 if at least the share --least of the programs
that PyTorch runs here is equal.
"""

from __future__ import annotations

import argparse
import datetime
import sys
from dataclasses import replace
from pathlib import Path

from . import report
from .catalogue import PROGRAMS
from .run import VARIANTS, Side, difference, missing, run, start_times, times


def _judge(program, ours, theirs) -> dict:
    row = {"name": program.name, "numbers": len(theirs.numbers), "date": datetime.date.today().isoformat()}
    if theirs.error:
        return row | {"verdict": "not in PyTorch", "note": theirs.error}
    if ours.error:
        return row | {"verdict": "fails", "note": " ".join(filter(None, (ours.error, program.remark)))}
    if theirs.parts:
        return row | {"verdict": "", "parts": _judge_parts(program, ours.parts, theirs.parts), "note": ""}
    gap = difference(ours.numbers, theirs.numbers)
    if not theirs.numbers:
        return row | {"verdict": "runs", "note": "prints no numbers"}
    if gap == float("inf"):
        note = f"{len(ours.numbers)} numbers instead of {len(theirs.numbers)}"
        return row | {"verdict": "differs", "note": note}
    verdict = "equal" if gap <= program.tolerance else "differs"
    return row | {"verdict": verdict, "difference": gap, "note": ""}


def _judge_parts(program, ours: dict, theirs: dict) -> list[dict]:
    """Return a row for each model that PyTorch has printed numbers of."""
    rows = []
    for name, numbers in theirs.items():
        gap = difference(ours.get(name, []), numbers)
        row = {"name": f"{program.name}: {name}", "part": name, "numbers": len(numbers), "note": ""}
        row["verdict"] = "equal" if gap <= program.tolerance else "differs"
        rows.append(row | ({"difference": gap} if gap != float("inf") else {"note": "other numbers"}))
    return rows


def _repeated(program, side: Side, sources: Path) -> list:
    """Return runs of PyTorch in which the last bits of its numbers differ."""
    runs = (run(program, replace(side, extra=variant), sources) for variant in VARIANTS)
    return [again for again in runs if not again.error]


def _with_noise(program, row: dict, theirs, side: Side, sources: Path) -> dict:
    """Ask how much PyTorch differs from itself, where a program makes much of the last bits.

    A difference that is not larger than PyTorch's own is called rounding. Each model has a noise of its own.
    """
    runs = _repeated(program, side, sources)

    def judged(one: dict, numbers_of) -> dict:
        if one["verdict"] != "differs" or "difference" not in one:
            return one
        noise = max((difference(numbers_of(again), numbers_of(theirs)) for again in runs), default=0.0)
        verdict = "rounding" if one["difference"] <= noise else "differs"
        return one | {"verdict": verdict, "note": f"PyTorch itself differs by {noise:.1e}"}

    if "parts" not in row:
        return judged(row, lambda again: again.numbers)
    parts = [judged(one, lambda again, one=one: again.parts.get(one["part"], [])) for one in row["parts"]]
    return row | {"parts": parts}


def _with_verdict(row: dict) -> dict:
    """Return the row of a program of several models with the worst verdict and the largest difference of them."""
    if "parts" not in row:
        return row
    verdicts = [part["verdict"] for part in row["parts"]]
    worst = next(v for v in ("differs", "rounding", "equal") if v in verdicts)
    gaps = [part["difference"] for part in row["parts"] if "difference" in part]
    note = f"{verdicts.count('equal')} of {len(verdicts)} models equal, {verdicts.count('rounding')} rounding"
    return row | {"verdict": worst, "note": note} | ({"difference": max(gaps)} if gaps else {})


def _row(program, sides: tuple[Side, Side], sources: Path) -> dict:
    """Run a program on both sides and return its row."""
    lacking = next((text for side in sides if (text := missing(program, sources, side))), "")
    if lacking:
        return {"name": program.name, "verdict": "not run", "note": lacking}
    theirs, ours = (run(program, side, sources) for side in reversed(sides))
    row = _judge(program, ours, theirs)
    unequal = [one for one in row.get("parts", [row]) if one["verdict"] == "differs"]
    if any("difference" in one for one in unequal):
        row = _with_noise(program, row, theirs, sides[1], sources)
    return _with_verdict(row)


def _with_speed(
    program, row: dict, sides: tuple[Side, Side], sources: Path, pairs: int, starts: dict
) -> dict:
    """Return the row with the seconds of some pairs of runs, if it is a good one and the machine is quiet.

    `starts` keeps the seconds of the start by the number of processes.
    """
    if row["verdict"] not in report.GOOD or not pairs:
        return row
    ours, theirs = sides
    reason = ""
    if program.ranks not in starts:
        start, reason = start_times(program.ranks, theirs, ours, sources, pairs)
        if not reason:
            starts[program.ranks] = start
    found: list[tuple[float, float]] = []
    if not reason:
        found, reason = times(program, theirs, ours, sources, pairs)
    if reason:
        print(f"{program.name}: no speed is measured: {reason}", flush=True)
        return row
    return row | {"seconds": found, "start": starts[program.ranks]}


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.programs", description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--torch-python", required=True, metavar="PYTHON", help="a Python with PyTorch 2.13")
    add("--sources", required=True, type=Path, metavar="FOLDER", help="the folder with the clones")
    add("--packages", default="", metavar="FOLDER", help="a folder of packages for both interpreters")
    add("--only", nargs="+", default=[], metavar="TEXT", help="programs whose name contains one of these")
    add("--pairs", type=int, default=3, metavar="NUMBER", help="of runs for the speed; 0 measures none")
    add(
        "--speed-alone", action="store_true", help="keep the results, and measure the speeds that are missing"
    )
    add("--least", type=float, default=1.0, metavar="SHARE", help="of the programs that must be equal")
    options = parser.parse_args(arguments)
    options.chosen = [p for p in PROGRAMS if not options.only or any(text in p.name for text in options.only)]
    if not options.chosen:
        parser.error(f"no program has one of {options.only} in its name")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    sides = Side(sys.executable, True, options.packages), Side(options.torch_python, False, options.packages)
    rows = {row["name"]: row for row in report.load()}
    starts: dict[int, list[float]] = {}
    for number, program in enumerate(options.chosen, 1):
        known = rows.get(program.name)
        if options.speed_alone:
            if known is None or known.get("seconds"):
                continue
            row = known
        else:
            row = _row(program, sides, options.sources)
        row = _with_speed(program, row, sides, options.sources, options.pairs, starts)
        print(f"[{number}/{len(options.chosen)}] {report.line(row)}", flush=True)
        if row["verdict"] != "not run":
            rows[program.name] = row
            report.save([rows[p.name] for p in PROGRAMS if p.name in rows])
    counted = [rows[p.name] for p in options.chosen if p.name in rows]
    counted = [row for row in counted if row["verdict"] != "not in PyTorch"]
    equal = sum(row["verdict"] in report.GOOD for row in counted)
    print(f"{equal} of {len(counted)} programs equal")
    return 0 if counted and equal >= options.least * len(counted) else 1


if __name__ == "__main__":
    sys.exit(main())
