"""What a training step issues on the simulated NPU, as a section of docs/benchmarks.md.

python -m benchmarks npu [--rounds 5] [--json JSON] [--table docs/benchmarks.md]
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

from . import report
from .sides import environment

JOB = Path(__file__).with_name("npu_steps.py")


def measure(rounds: int) -> dict:
    """Count the steps in so many processes: the date, and each step's numbers in each process."""
    command = [sys.executable, "-m", "msadapter", "--simulated-npu", str(JOB)]
    seen: dict[str, list] = {}
    for _ in range(rounds):
        env = environment(True, os.cpu_count() or 1, MSADAPTER_DEVICE="npu", GLOG_v="3")
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{JOB.name} failed:\n{done.stderr[-3000:]}")
        for name, counts in json.loads(done.stdout.splitlines()[-1]).items():
            seen.setdefault(name, []).append(counts)
    return {"when": datetime.date.today().isoformat(), "steps": seen}


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks npu", description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="processes that count the steps")
    parser.add_argument("--json", type=Path, help="write all numbers here")
    parser.add_argument("--table", type=Path, help="replace the section of this page (docs/benchmarks.md)")
    args = parser.parse_args(argv)
    counts = measure(args.rounds)
    if args.json:
        args.json.write_text(json.dumps(counts, indent=1) + "\n")
    if args.table:
        args.table.write_text(report.with_npu_section(args.table.read_text(), counts))
    print(report.npu_section(counts))
    return 0
