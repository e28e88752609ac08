"""The folder of a run: FOLDER/NAME/TIME with its configuration, command, log, losses and state.

config.yaml     the configuration with recipe and KEY=VALUE applied
command.sh      the exact command of upstream; `bash command.sh` runs it by hand
log.txt         all that upstream printed, of all attempts
losses.jsonl    a line for each line of upstream's log with losses: iteration and every number
status.json     state, iteration, loss, exit code
checkpoints/, tensorboard/    upstream's own
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import locks
from ..convert.steps import write_atomically
from ..errors import UserError, see
from ..monitor.outputs import LOGGED
from . import trainer_checkpoints

LATEST = "latest_checkpointed_iteration.txt"


def named_iteration(checkpoint: Path) -> tuple[str, Path]:
    """(the text of a checkpoint's file LATEST, the folder of the iteration that it names). The folder need not be there."""
    text = (checkpoint / LATEST).read_text(encoding="utf-8").strip()
    return text, checkpoint / (f"iter_{int(text):07}" if text.isdigit() else text)


@dataclass(frozen=True)
class RunFolder:
    """A run's folder."""

    path: Path

    @property
    def log(self) -> Path:
        return self.path / "log.txt"

    @property
    def losses(self) -> Path:
        return self.path / LOGGED

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def status(self) -> dict[str, Any]:
        """What status.json says, or {} without one. A run that says "running" and holds no lock was ended from outside."""
        try:
            found = json.loads((self.path / "status.json").read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            return {}
        if not isinstance(found, dict):
            return {}
        if found.get("state") == "running" and not self.is_held():
            found["state"] = "lost"
        return found

    def write_status(self, status: Mapping[str, Any]) -> None:
        write_atomically(self.path / "status.json", json.dumps(dict(status), indent=1) + "\n")

    def records(self) -> list[dict[str, Any]]:
        """The lines of losses.jsonl by iteration. Where a resumed run repeats an iteration, the later line counts."""
        found: dict[int, dict[str, Any]] = {}
        if self.losses.is_file():
            for line in self.losses.read_text(encoding="utf-8").splitlines():
                try:
                    record = json.loads(line)
                    found[int(record["iteration"])] = record
                except (ValueError, KeyError, TypeError):
                    continue  # the last line of a run that was ended while it wrote
        return [found[number] for number in sorted(found)]

    def checkpointed(self) -> int | None:
        """The iteration of the last checkpoint; None if there is none. Of transformers' Trainer it is the last whole one."""
        try:
            text = (self.checkpoints / LATEST).read_text(encoding="utf-8").strip()
        except (FileNotFoundError, NotADirectoryError):
            last = trainer_checkpoints.last(self.checkpoints)
            return None if last is None else last[0]
        return int(text) if text.isdigit() else None

    def is_held(self) -> bool:
        """True while a process trains in this folder."""
        try:
            with open(self.path / ".lock") as lock:
                return not locks.take(lock)
        except FileNotFoundError:
            return False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Holds the folder, so that no second process trains in it.

        Raises:
            UserError: another process does.
        """
        with open(self.path / ".lock", "w") as lock:
            if not locks.take(lock):
                raise UserError(
                    f"{self.path}: another process trains in this folder: wait until it ends {see('busy-folder')}"
                )
            yield


def new(root: Path, name: str) -> RunFolder:
    """A folder for a new run, which exists and is empty."""
    parent = (root / name).absolute()
    parent.mkdir(parents=True, exist_ok=True)
    for number in range(1, 1000):
        path = parent / (next_name() if number == 1 else f"{next_name()}-{number}")
        try:
            path.mkdir()
            return RunFolder(path)
        except FileExistsError:  # a second run in the same second
            continue
    raise UserError(f"{parent} already has a thousand runs that began in this second")


def named(root: Path, name: str, chosen: str, machine: int) -> tuple[Path, RunFolder]:
    """The folder of a run with a name of its own, and this machine's folder in it, which for the first one is the same.

    They exist afterwards, and may have an earlier start of the run.
    """
    whole = (root / name / chosen).absolute()
    own = whole / f"machine-{machine}" if machine else whole
    own.mkdir(parents=True, exist_ok=True)
    return whole, RunFolder(own)


def next_name() -> str:
    return time.strftime("%Y%m%d-%H%M%S")


def runs(root: Path, name: str = "*") -> list[RunFolder]:
    """The runs of a name, the oldest first."""
    found = [file.parent for file in root.absolute().glob(f"{name}/*/status.json")]
    return [RunFolder(path) for path in sorted(found, key=lambda path: (path.parent.name, path.name))]


def to_resume(root: Path, name: str, named: str | None) -> RunFolder:
    """The run that is to go on: the folder that is named, or with None the last one of this name that has a checkpoint.

    Raises:
        UserError: there is none, or it has no checkpoint.
    """
    if named is not None:
        chosen = RunFolder(Path(named).absolute())
        if not (chosen.path / "status.json").is_file():
            raise UserError(f"--resume-from {named}: this is not a folder of a run (it has no status.json)")
    else:
        earlier = [run for run in runs(root, name) if run.checkpointed() is not None]
        if not earlier:
            raise UserError(
                f"--resume: no run in {(root / name).absolute()} has a checkpoint: start a new one, with save.interval "
                + see("nothing-to-resume")
            )
        chosen = earlier[-1]
    if chosen.checkpointed() is None:
        raise UserError(f"--resume: {chosen.path} has no checkpoint to go on from: start a new run")
    return chosen


def fsynced_line(file: Any, record: Mapping[str, Any]) -> None:
    """Appends a line of JSON that survives the end of this process."""
    file.write(json.dumps(dict(record)) + "\n")
    file.flush()
    os.fsync(file.fileno())
