"""What the training jobs of the scenarios llm, mm and rl have in common: each runs a shell script of megatron_ms/examples."""

from __future__ import annotations

import shlex
from pathlib import Path

from .environment import clean_environment
from .scenario import LOCK, Run
from .steps import ChildError, ConvertError, Progress, run


def folder_of(work: Run) -> Path:
    """The folder for data, models, checkpoints and logs."""
    return work.output / f"train-{work.name}"


def lock_of(work: Run) -> str:
    """The text that names the commits of the converted trees. A result of other trees is made again."""
    return (work.home / LOCK).read_text(encoding="utf-8")


def run_script(work: Run, script: Path, places: list[Path], log: Path, progress: Progress) -> str:
    """Runs a script in the shell of the converted trees, with `places` as its arguments, and returns its output.

    Raises:
        ChildError: the script failed.
    """
    environment = {name: value for name, value in clean_environment().items() if name != "MSADAPTER_SHELL"}
    words = shlex.join(["bash", str(script), *map(str, places)])
    command = f". {shlex.quote(str(work.home / 'env.sh'))} && exec {words}"
    return run(["bash", "-c", command], log, progress, environment)


def failure(error: ChildError) -> ConvertError:
    """What to tell the user of a training that failed."""
    return ConvertError(f"the training ended with exit code {error.code}:\n{error.tail(20)}")
