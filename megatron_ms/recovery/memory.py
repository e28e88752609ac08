"""Checkpoints in the memory of the machine: upstream's own files, in /dev/shm, after every so many steps.

They outlive the processes of an attempt, however these end. On several machines each has the files of its own ranks, and a copy
of those of its neighbour (copies.py), so that the end of one machine loses none. The supervisor copies the newest whole one into
the run's folder when an attempt has failed, and removes them when the run ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from pathlib import Path

from patches.tree import aside_of

from . import manifest

ROOT = Path("/dev/shm")


def place_for(folder: Path, machine: int = 0, root: Path = ROOT) -> Path:
    """Where the checkpoints in memory of a run's folder are. machine: the number of this one among those of the run."""
    name = hashlib.sha256(os.fsencode(folder.absolute())).hexdigest()[:16]
    return root / (f"megatron_ms-{os.getuid()}-{name}" + (f"-{machine}" if machine else ""))


def prepare(place: Path) -> None:
    """Makes the folder, which only this user can read.

    Raises:
        PermissionError: another user has made it.
    """
    place.mkdir(mode=0o700, exist_ok=True)
    state = place.lstat()
    if place.is_symlink() or state.st_uid != os.getuid() or state.st_mode & 0o077:
        raise PermissionError(
            f"{place} is not a private folder of this user: remove it, or leave out recovery.memory"
        )


def keep(place: Path, checkpoints: Path) -> int | None:
    """Copies the newest checkpoint in memory, if it is newer than what the run's folder has. Returns its iteration.

    On several machines each has a part of the files and those of its neighbour. They copy what they have, and the one that copies
    the last file gives the checkpoint its name. Returns None on the others.
    """
    try:
        on_disk = manifest.choose(checkpoints).iteration or 0
    except manifest.NothingWhole:
        on_disk = 0
    for number in manifest.iterations(place):
        source = manifest.place_of(place, number)
        try:
            files, health = manifest.read(source)
        except ValueError:
            continue  # it was not finished
        if (
            number > on_disk
            and health.healthy
            and _gather(source, files, health, manifest.place_of(checkpoints, number))
        ):
            manifest.demand(checkpoints)
            manifest.point(checkpoints, number)
            return number
    return None


def _gather(source: Path, files: manifest.Measured, health: manifest.Health, target: Path) -> bool:
    """Copies the whole files of a checkpoint to where all machines put theirs. True if it is complete by this."""
    kept = _gathering(target)
    for name, (size, digest) in files.items():
        goal = kept / name
        if goal.is_file() and goal.stat().st_size == size:
            continue  # by another machine
        if not manifest.file_fault(source / name, size, digest):
            goal.parent.mkdir(parents=True, exist_ok=True)
            beside = goal.with_name(f".{goal.name}.{os.getpid()}.part")
            shutil.copyfile(source / name, beside)
            beside.replace(goal)
    if any(not (kept / name).is_file() for name in files):
        return False  # other machines have the rest
    for part in kept.rglob(".*.part"):
        part.unlink(missing_ok=True)
    manifest.write(kept, manifest.measure(kept), health)  # which flushes them
    if manifest.read(kept)[0] != files:
        shutil.rmtree(kept)
        raise OSError(f"the copy {kept} of a checkpoint in memory has another content than the checkpoint")
    if target.exists():
        target.rename(aside_of(target))
    kept.rename(target)
    return True


def _gathering(target: Path) -> Path:
    return target.with_name(f".{target.name}.kept")


def discard(checkpoints: Path) -> None:
    """Removes what machines have gathered of checkpoints that never became complete."""
    for kept in checkpoints.glob(".iter_*.kept"):
        with contextlib.suppress(FileNotFoundError):  # another machine does the same
            shutil.rmtree(kept)


def prune(place: Path, newest: int) -> None:
    """Removes the checkpoints in memory before the newest one, which is whole and healthy."""
    for number in manifest.iterations(place):
        if number != newest:
            shutil.rmtree(manifest.place_of(place, number))


def remove(place: Path) -> None:
    """Removes all checkpoints in memory of a run."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
