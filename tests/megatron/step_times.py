"""Records how long the ranks work in each step of a run without a fault, for the tests of the rule for stragglers.

    python -m tests.megatron.step_times TREE FILE [STEPS]

TREE is a checkout of Megatron-LM core_v0.12.1. FILE gets a line for each step: the own time of each rank and the time of the step,
in milliseconds. Run it on a busy machine.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.megatron import lm_checkout as tools
from tests.megatron.faulty_runs import Toy


def main() -> None:
    tree, file, steps = Path(sys.argv[1]).absolute(), Path(sys.argv[2]), int((sys.argv[3:] or ["1500"])[0])
    with tempfile.TemporaryDirectory(prefix="step-times-") as folder:
        words = (f"train.iterations={steps}", f"save.interval={steps}", "health.trace=false")
        toy = Toy(Path(folder) / "runs", tools.scratch_copy(tree, Path(folder)))
        run = toy.run(*words, name="quiet", patience=3600)
    if run.code:
        raise SystemExit(run.output[-3000:])
    lines = [
        f"# python -m tests.megatron.step_times, {steps} steps, load {run.load:.1f} on {os.cpu_count()} cores\n"
    ]
    for _, record in sorted(run.records.items()):
        own = [rank["seconds"] for rank in record["ranks"]]
        lines.append("\t".join(f"{1e3 * value:.1f}" for value in [*own, record["seconds"]]) + "\n")
    file.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
