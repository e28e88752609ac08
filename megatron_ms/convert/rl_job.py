"""The training job of the scenario rl: MindSpeed-RL's train_grpo.py teaches a small model to add, on two processes with Ray."""

from __future__ import annotations

import json
from pathlib import Path

from .scenario import Run
from .script_job import failure, folder_of, lock_of, run_script
from .steps import ROOT, ChildError, ConvertError, Progress, Stamp, digest

SCRIPT = ROOT / "megatron_ms" / "examples" / "train_rl.sh"
TASK = ROOT / "megatron_ms" / "examples" / "rl_addition.py"
NAMES = ROOT / "megatron_ms" / "rollout" / "names"
THRESHOLD = 0.1  # by which GRPO must raise the share of right sums


def train(work: Run, logs: Path, progress: Progress) -> bool:
    """Runs all steps of the script. Returns False if they are done.

    Raises:
        ConvertError: a step failed, or the share of right sums did not rise by THRESHOLD.
    """
    place = folder_of(work)
    stamp = Stamp(work.output / f"train-{work.name}.json")
    key = digest(SCRIPT, TASK, lock_of(work))
    if stamp.holds(key):
        return False
    (place / ".prepared").unlink(missing_ok=True)
    try:
        run_script(work, SCRIPT, [place], logs / "train-rl.log", progress)
    except ChildError as error:
        raise failure(error) from None
    before, after = shares(work)
    if after < before + THRESHOLD:
        raise ConvertError(
            f"GRPO changed the share of right sums from {before:.1%} to {after:.1%}, and must raise it by {THRESHOLD:.0%}"
        )
    stamp.write(key, [place / "result.json"])
    return True


def shares(work: Run) -> tuple[float, float]:
    """The share of right sums before and after."""
    found = json.loads((folder_of(work) / "result.json").read_text(encoding="utf-8"))
    return found["before"]["right"], found["after"]["right"]
