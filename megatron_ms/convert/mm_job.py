"""The training job of the scenario mm: MindSpeed-MM's pretrain_vlm.py tunes a small Qwen2.5-VL with LoRA on eight pictures."""

from __future__ import annotations

import re
from pathlib import Path

from . import job
from .scenario import Run
from .script_job import failure, folder_of, lock_of, run_script
from .steps import ROOT, ChildError, ConvertError, Progress, Stamp, digest

SCRIPT = ROOT / "megatron_ms" / "examples" / "finetune_qwen25vl.sh"
TASK = ROOT / "megatron_ms" / "examples" / "vision_questions.py"
_LOSS = re.compile(r"iteration +(\d+)/.*\| loss: (\S+) \|")


def train(work: Run, logs: Path, progress: Progress) -> bool:
    """Runs all steps of the script. Returns False if they are done. Resumes an interrupted run.

    Raises:
        ConvertError: a step failed, or the loss did not fall.
    """
    place = folder_of(work)
    stamp = Stamp(work.output / f"train-{work.name}.json")
    key = digest(SCRIPT, TASK, lock_of(work))
    if stamp.holds(key):
        return False
    job.forget_other_run(place, key)
    try:
        run_script(work, SCRIPT, [place], logs / "train-mm.log", progress)
    except ChildError as error:
        raise failure(error) from None
    first, last = losses(work)
    if not last < first:
        raise ConvertError(f"the loss went from {first:.3f} to {last:.3f}, and must fall")
    stamp.write(key, [place / "log.txt", place / "lora" / "latest_checkpointed_iteration.txt"])
    return True


def losses(work: Run) -> tuple[float, float]:
    """The loss of the first and of the last iteration, from the script's log."""
    path = folder_of(work) / "log.txt"
    found = {
        int(number): float(loss)
        for number, loss in _LOSS.findall(path.read_text(encoding="utf-8", errors="replace"))
    }
    if len(found) < 2:
        raise ConvertError(f"the training left no losses in {path}")
    return found[min(found)], found[max(found)]
