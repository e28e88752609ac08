"""Checkpoints in the memory of the machine: upstream's own files, in /dev/shm, after every so many steps.

They outlive the processes of an attempt, however these end. The supervisor copies the newest whole one into the run's folder when
an attempt has failed, and removes them when the run ends.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from patches.tree import aside_of

from . import manifest

ROOT = Path("/dev/shm")


def place_for(folder: Path, root: Path = ROOT) -> Path:
    """Where the checkpoints in memory of a run's folder are."""
    name = hashlib.sha256(os.fsencode(folder.absolute())).hexdigest()[:16]
    return root / f"megatron_ms-{os.getuid()}-{name}"


def prepare(place: Path) -> None:
    """Makes the folder, which only this user can read.

    Raises:
        PermissionError: somebody else has made it.
    """
    place.mkdir(mode=0o700, exist_ok=True)
    state = place.lstat()
    if place.is_symlink() or state.st_uid != os.getuid() or state.st_mode & 0o077:
        raise PermissionError(
            f"{place} is not a private folder of this user: remove it, or leave out recovery.memory"
        )


def keep(place: Path, checkpoints: Path) -> int | None:
    """Copies the newest whole checkpoint from memory, if it is newer than what the run's folder has. Returns its iteration."""
    try:
        newest = manifest.choose(place).iteration
        on_disk = manifest.choose(checkpoints).iteration or 0
    except manifest.NothingWhole:
        on_disk, newest = 0, _whole(place)
    if newest is None or newest <= on_disk:
        return None
    target = manifest.place_of(checkpoints, newest)
    beside = target.with_name(f".{target.name}.{os.getpid()}.part")
    shutil.copytree(manifest.place_of(place, newest), beside)
    manifest.measure(beside)  # flushes the files to the disk
    if found := manifest.fault(beside):
        raise OSError(f"the copy {beside} of a checkpoint in memory is not whole: {found}")
    if target.exists():
        target.rename(aside_of(target))
    beside.rename(target)
    manifest.demand(checkpoints)
    manifest.point(checkpoints, newest)
    return newest


def prune(place: Path, newest: int) -> None:
    """Removes the checkpoints in memory before the newest one, which is whole."""
    for number in manifest.iterations(place):
        if number != newest:
            shutil.rmtree(manifest.place_of(place, number))


def remove(place: Path) -> None:
    """Removes all checkpoints in memory of a run."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)


def _whole(place: Path) -> int | None:
    numbers = manifest.iterations(place)
    return next((one for one in numbers if not manifest.fault(manifest.place_of(place, one))), None)
