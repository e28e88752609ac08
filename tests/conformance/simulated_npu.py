"""Runs PyTorch's operator samples on the simulated NPU, and records for each operator whether it runs there.

    MSADAPTER_CONFORMANCE=... python -m tests.conformance.simulated_npu --record     # writes docs/ascend_answers.json
    MSADAPTER_CONFORMANCE=... python -m tests.conformance.simulated_npu --out FILE   # writes the outcomes there

The process must import torch on the simulated NPU: MSADAPTER_SIMULATED_NPU=1, MSADAPTER_DEVICE=npu and msadapter's shim
on PYTHONPATH. An outcome of an operator and a check (forward, grad, inplace, method) is one of

- "passes": every sample gives PyTorch's answer, and no operator of MindSpore was computed on the host;
- "falls back": every sample gives PyTorch's answer, some work was done on the host;
- "differs": some sample gives another answer;
- "refused": some sample raises an error.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.util
import json
import os
import sys
import warnings
from pathlib import Path

from tests.contract.coverage import ON_ASCEND as ANSWERS
from tests.contract.coverage import OUTCOMES

DTYPES = ("float32", "float16", "bfloat16", "int64", "bool")
CHECKS = ("forward", "grad", "inplace", "method")


def _runner(folder: Path):
    """The shared runner of samples, as a module."""
    spec = importlib.util.spec_from_file_location("run_conformance", folder / "run_conformance.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.load_torch()
    return module


def _outcome(status: str, fell_back: bool) -> str:
    if status in ("fail", "near"):
        return "differs"
    if status != "pass":
        return "refused"
    return "falls back" if fell_back else "passes"


class Operator:
    """The outcomes of one operator's samples, by check."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.outcomes: dict[str, str] = {}
        self.on_host: set[str] = set()
        self.first: dict[str, str] = {}  # what the first sample that is worst says

    def add(self, check: str, outcome: str, said: str, on_host: list[str]) -> None:
        worst = self.outcomes.get(check)
        if worst is None or OUTCOMES.index(outcome) > OUTCOMES.index(worst):
            self.outcomes[check] = outcome
            if said:
                self.first[check] = said
        self.on_host.update(on_host)

    def row(self) -> dict:
        return {
            "path": self.path,
            "outcomes": self.outcomes,
            "on host": sorted(self.on_host),
            "says": self.first,
        }


def _host_calls(before: dict, after: dict) -> list[str]:
    """The operators of MindSpore that were computed on the host in between, with the reason where there is one."""
    return [
        f"{name} ({reason})" if reason else name
        for (name, reason), count in after.items()
        if count > before.get((name, reason), 0)
    ]


def measure(folder: Path, every: int = 1) -> dict[str, dict]:
    """Run all samples of the dtypes above, or those of every so many-th file only. Return a row for each operator."""
    from msadapter._host.native import load

    runner, native = _runner(folder), load()
    import torch

    rows: dict[str, Operator] = {}
    files = sorted((folder / "golden").glob("*.npz"))[::every]
    for index, path in enumerate(files):
        meta, stored = runner.load_golden(path)
        arrays = runner.Lazy(stored)
        name = ".".join(filter(None, (meta["name"], meta["variant"])))
        operator = rows.setdefault(name, Operator(meta["path"]))
        for sample in meta["samples"]:
            if sample["dtype"] not in DTYPES:
                continue
            if sample.get("seed") is not None:
                torch.manual_seed(sample["seed"])
            for check in CHECKS:
                before = native.host_calls()
                status, said = runner.run_sample(meta, sample, arrays, "npu", "backward", (check,))[check]
                if status == "na":
                    continue
                on_host = _host_calls(before, native.host_calls())
                operator.add(check, _outcome(status, bool(on_host)), said, on_host)
        if sys.stderr.isatty():
            print(f"\r{index + 1}/{len(files)} {name:60}", end="", file=sys.stderr, flush=True)
    return {name: operator.row() for name, operator in sorted(rows.items()) if operator.outcomes}


def settings() -> str:
    """Return how the simulated NPU of this process was set."""
    delay = os.environ.get("MSADAPTER_SIMULATED_NPU_DELAY_US", "0")
    poison = os.environ.get("MSADAPTER_SIMULATED_NPU_POISON", "0") not in ("", "0")
    tasks = f"tasks delayed at random by up to {delay} us" if delay != "0" else "tasks not delayed"
    return tasks + (", fresh memory filled with NaN" if poison else "")


def rates(rows: dict[str, dict]) -> dict[str, tuple[int, int]]:
    """Return for each check how many operators give PyTorch's answers, and how many there are."""
    counted = {}
    for check in CHECKS:
        outcomes = [row["outcomes"][check] for row in rows.values() if check in row["outcomes"]]
        counted[check] = (sum(outcome in ("passes", "falls back") for outcome in outcomes), len(outcomes))
    return counted


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.simulated_npu", description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--record", action="store_const", const=ANSWERS, dest="out", help=f"write {ANSWERS.name}"
    )
    where.add_argument("--out", type=Path, help="write the outcomes to this file")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="run each N-th operator only")
    args = parser.parse_args(arguments)
    if args.every < 1 or (args.every > 1 and args.out == ANSWERS):
        parser.error("--every takes a positive number, and --record takes all operators")
    folder = os.environ.get("MSADAPTER_CONFORMANCE")
    if not folder:
        parser.error("MSADAPTER_CONFORMANCE must name the folder of run_conformance.py and its answers")
    warnings.filterwarnings("ignore", message=".*is computed on the host")
    rows = measure(Path(folder), args.every)
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
    how = json.dumps(f"{', '.join(DTYPES)}; {settings()}; {datetime.date.today()}")
    args.out.write_text(f'{{\n "how": {how},\n "operators": {{\n{lines}\n }}\n}}\n', encoding="utf-8")
    for check, (right, all_) in rates(rows).items():
        print(f"{check}: {right} of {all_} operators, {100 * right / all_:.1f} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
