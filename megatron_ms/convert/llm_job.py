"""The training job of the scenario llm: MindSpeed-LLM trains a small Qwen2.5 on the bundled text on two processes."""

from __future__ import annotations

import json
from pathlib import Path

from . import job
from .environment import PYTHON, clean_environment
from .scenario import Run
from .script_job import failure, folder_of, lock_of, run_script
from .steps import ROOT, ChildError, ConvertError, Progress, Stamp, digest, run

SCRIPT = ROOT / "megatron_ms" / "examples" / "pretrain_qwen25.sh"
PLOT = ROOT / "megatron_ms" / "examples" / "plot_log.py"


def megatron_of(work: Run) -> Path:
    return work.tree(next(source for source in work.sources if source.rules == "megatron_core"))


def preprocess(work: Run, logs: Path, progress: Progress) -> bool:
    """Makes the data set and its tokenizer with the converted Megatron."""
    return job.preprocess(megatron_of(work), folder_of(work), logs, progress)


def train(work: Run, logs: Path, progress: Progress) -> bool:
    """Trains for a hundred iterations; writes checkpoints, losses, curve and events. Resumes an interrupted run."""
    place = folder_of(work) / "qwen25"
    results = [place / name for name in ("losses.json", "loss.png", "latest_checkpointed_iteration.txt")]
    stamp = Stamp(folder_of(work) / "qwen25.json")
    key = digest(SCRIPT, lock_of(work), job.data_key(megatron_of(work)))
    if stamp.holds(key):
        return False
    job.forget_other_run(place, key)
    log = logs / "train-qwen25.log"
    try:
        output = run_script(work, SCRIPT, [folder_of(work) / "shakespeare", place], log, progress)
        with open(place / "log.txt", "a", encoding="utf-8") as file:
            file.write(output)
        run(
            [PYTHON, PLOT, place / "log.txt", "--save", place, "--title", "Qwen2.5 on Shakespeare"],
            logs / "plot.log",
            progress,
            clean_environment(),
        )
    except ChildError as error:
        if error.log == log:
            with open(
                place / "log.txt", "a", encoding="utf-8"
            ) as file:  # append: the output of an interrupted run is part of the curve
                file.write(error.output)
        raise failure(error) from None
    missing = [path.name for path in results if not path.is_file()]
    if missing:
        raise ConvertError(f"the training left no {', '.join(missing)} in {place}; its output is in {log}")
    stamp.write(key, results)
    return True


def losses(work: Run) -> dict[str, float]:
    """The first, last and validation loss."""
    found = json.loads((folder_of(work) / "qwen25" / "losses.json").read_text(encoding="utf-8"))
    first, last = found["iterations"][0]["loss"], found["iterations"][-1]["loss"]
    return {"first": first, "last": last, "validation": found["validation"][-1]["loss"]}
