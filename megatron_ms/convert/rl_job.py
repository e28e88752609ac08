"""The training job of the scenario rl: MindSpeed-RL's train_grpo.py teaches a small model to add, on two processes with Ray."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from .environment import clean_environment
from .scenario import LOCK, Run
from .steps import ROOT, ChildError, ConvertError, Progress, Stamp, digest, run

SCRIPT = ROOT / "megatron_ms" / "examples" / "train_rl.sh"
TASK = ROOT / "megatron_ms" / "examples" / "rl_addition.py"
NAMES = ROOT / "megatron_ms" / "rollout" / "names"
THRESHOLD = 0.1  # by which GRPO must raise the share of right sums


def folder_of(work: Run) -> Path:
    """The folder for data, models, checkpoints and logs."""
    return work.output / f"train-{work.name}"


def train(work: Run, logs: Path, progress: Progress) -> bool:
    """Runs all steps of the script. Returns False if they are done.

    Raises:
        ConvertError: a step failed, or the share of right sums did not rise by THRESHOLD.
    """
    place = folder_of(work)
    stamp = Stamp(work.output / f"train-{work.name}.json")
    key = digest(SCRIPT, TASK, (work.home / LOCK).read_text(encoding="utf-8"))
    if stamp.holds(key):
        return False
    (place / ".prepared").unlink(missing_ok=True)
    environment = {name: value for name, value in clean_environment().items() if name != "MSADAPTER_SHELL"}
    words = shlex.join(["bash", str(SCRIPT), str(place)])
    command = f". {shlex.quote(str(work.home / 'env.sh'))} && exec {words}"
    try:
        run(["bash", "-c", command], logs / "train-rl.log", progress, environment)
    except ChildError as error:
        raise ConvertError(f"the training ended with exit code {error.code}:\n{error.tail(20)}") from None
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
