"""What is in the machine's shared memory, and what a run has left there."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

PLACE = Path("/dev/shm")
OURS = "megatron_ms-"  # with which the folders of checkpoints in memory begin
_PATIENCE = 30.0  # seconds; a process that has ended gives its memory back a little later


def entries() -> set[str]:
    """The names of all files and folders in shared memory."""
    return set(os.listdir(PLACE))


def left_since(before: set[str], own: str) -> list[str]:
    """The files and folders that are new and stay, of any library, such as MPI's segments.

    Those of other runs at the same time do not count: folders of checkpoints in memory of another name, and what a running process
    has open or mapped. own: the name of this run's folder.
    """
    end = time.monotonic() + _PATIENCE
    while (found := _found(before, own)) and time.monotonic() < end:
        time.sleep(0.2)
    return [str(PLACE / name) for name in found]


def _found(before: set[str], own: str) -> list[str]:
    new = sorted(name for name in entries() - before if name.startswith(own) or not name.startswith(OURS))
    used = _used() if new else set()
    return [name for name in new if name.startswith(own) or name not in used]


def _used() -> set[str]:
    """The names in shared memory that running processes have open or mapped."""
    inside, found = f"{PLACE}/", set()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            for path in _paths(process):
                if path.startswith(inside):
                    found.add(path.removeprefix(inside).split("/")[0])
    return found


def _paths(process: Path) -> list[str]:
    """The files that a process has mapped or open; none if it has ended, or if this user may not read that."""
    found = []
    with contextlib.suppress(OSError):
        found += [line.split(maxsplit=5)[-1] for line in (process / "maps").read_text().splitlines()]
        for handle in os.listdir(process / "fd"):
            with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
                found.append(os.readlink(process / "fd" / handle))
    return found
