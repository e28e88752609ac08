"""The manifest of a checkpoint: size and sha256 of each file, and whether the training was healthy.

A manifest is written last, after all files are on the disk: to a temporary name, flushed, and renamed. A checkpoint without one
was therefore never finished. The file `manifests` in the folder of the checkpoints says that all of them have manifests; without
it the folder is another program's, and nothing is demanded.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from patches.tree import stream_sha256

NAME = "manifest.json"
MARK = "manifests"
LATEST = "latest_checkpointed_iteration.txt"
_VERSION = 1
_MOST = 64 << 20  # bytes of a manifest; a hundred thousand files need 15 MB
_PLACE = re.compile(r"iter_(\d{7,})")
Measured = dict[str, list[Any]]  # path inside the checkpoint -> [size, sha256]


@dataclass(frozen=True)
class Health:
    """Whether the training was healthy before the checkpoint, and why not."""

    healthy: bool = True
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Choice:
    """The checkpoint from which a run goes on, and the newer ones that were refused, each with its fault."""

    iteration: int | None
    refused: Sequence[tuple[int, str]] = field(default_factory=tuple)

    def said(self, folder: Path) -> list[str]:
        """The lines that tell the user of the choice; none if the newest checkpoint was taken."""
        if not self.refused:
            return []
        lines = [f"checkpoint {number} in {folder} is not used: {fault}" for number, fault in self.refused]
        if self.iteration is None:
            return [*lines, "no checkpoint was ever finished, so the run begins anew"]
        return [
            *lines,
            f"the run goes on from checkpoint {self.iteration}, the newest that is whole and healthy",
        ]


class NothingWhole(Exception):
    """A folder has checkpoints, but none that is whole and healthy."""


def place_of(folder: Path, iteration: int) -> Path:
    """The folder of a checkpoint, by upstream's name."""
    return folder / f"iter_{iteration:07d}"


def iterations(folder: Path) -> list[int]:
    """The checkpoints in a folder, the newest first, whole or not."""
    if not folder.is_dir():
        return []
    names = [_PLACE.fullmatch(place.name) for place in folder.iterdir() if place.is_dir()]
    return sorted((int(name[1]) for name in names if name), reverse=True)


def demanded(folder: Path) -> bool:
    """True if all checkpoints in this folder must have manifests."""
    return (folder / MARK).is_file()


def demand(folder: Path) -> None:
    """Says in the folder that its checkpoints have manifests. Called before the first of them is written."""
    folder.mkdir(parents=True, exist_ok=True)
    if not demanded(folder):
        _replace(folder / MARK, "Each checkpoint in this folder is finished when it has a manifest.json.\n")


def measure(place: Path, share: int = 0, shares: int = 1) -> Measured:
    """Flushes this share of a checkpoint's files to the disk and measures them. All shares together are all files."""
    found: Measured = {}
    for number, file in enumerate(_files(place)):
        if number % shares == share:
            with open(file, "rb") as opened:
                os.fsync(opened.fileno())
                digest = stream_sha256(opened)
                found[file.relative_to(place).as_posix()] = [os.fstat(opened.fileno()).st_size, digest]
    return found


def write(place: Path, measured: Mapping[str, Sequence[Any]], health: Health | None = None) -> None:
    """Writes the manifest of a checkpoint whose files have been measured. After this call the checkpoint counts as finished."""
    health = health or Health()
    for folder in {place, *(path for path in place.rglob("*") if path.is_dir())}:
        _flush_folder(folder)
    content = {
        "version": _VERSION,
        "files": {name: list(measured[name]) for name in sorted(measured)},
        "healthy": health.healthy,
        "reasons": list(health.reasons),
    }
    _replace(place / NAME, json.dumps(content | {"sha256": _digest(content)}, indent=1) + "\n")


def point(folder: Path, iteration: int) -> None:
    """Lets upstream's file with the number of the last checkpoint name this one."""
    _replace(folder / LATEST, str(iteration))


def read(place: Path) -> tuple[Measured, Health]:
    """The manifest of a checkpoint.

    Raises:
        ValueError: it is absent or damaged. The message says which.
    """
    file = place / NAME
    try:
        if file.stat().st_size > _MOST:
            raise ValueError("its manifest is too large to be one")
        content = json.loads(file.read_text(encoding="utf-8"))
        if content.pop("sha256") != _digest(content):
            raise KeyError
        files = {str(name): [int(size), str(digest)] for name, (size, digest) in content["files"].items()}
        healthy, reasons, version = content["healthy"], content["reasons"], content["version"]
    except FileNotFoundError:
        raise ValueError("it was not finished (it has no manifest)") from None
    except (KeyError, TypeError, AttributeError, RecursionError, json.JSONDecodeError, UnicodeDecodeError):
        raise ValueError("its manifest is damaged") from None
    if version != _VERSION:
        raise ValueError(f"its manifest has the version {version}, and {_VERSION} is known here")
    if not files or not isinstance(healthy, bool) or not isinstance(reasons, list):
        raise ValueError("its manifest is damaged")
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise ValueError(f"its manifest names a file outside of it: {name}")
    return files, Health(healthy, tuple(map(str, reasons)))


def fault(place: Path, share: int = 0, shares: int = 1, content: bool = True) -> str:
    """What is wrong with a checkpoint, by its manifest; "" if nothing is.

    A share checks only its part of the files. Without `content`, only their sizes are checked, which is fast.
    """
    try:
        files, health = read(place)
    except ValueError as error:
        return str(error)
    except OSError as error:
        return f"its manifest cannot be read ({error.strerror})"
    if not health.healthy:
        return "it is unhealthy: " + "; ".join(health.reasons)
    for number, (name, (size, digest)) in enumerate(sorted(files.items())):
        if number % shares == share and (
            found := file_fault(place / name, size, digest if content else None)
        ):
            return f"{name} {found}"
    return ""


def choose(folder: Path, find: Callable[[Path], str] = fault, numbers: Sequence[int] | None = None) -> Choice:
    """The newest checkpoint in a folder that is whole and healthy.

    find(place): what is wrong with a checkpoint. numbers: the checkpoints, the newest first; by default all in the folder.

    Raises:
        NothingWhole: there are finished checkpoints, but all of them are refused.
    """
    refused: list[tuple[int, str]] = []
    for number in iterations(folder) if numbers is None else numbers:
        found = find(place_of(folder, number))
        if not found:
            return Choice(number, refused)
        refused.append((number, found))
    if any((place_of(folder, number) / NAME).is_file() for number, _ in refused):
        lines = "\n".join(f"  checkpoint {number}: {found}" for number, found in refused)
        raise NothingWhole(
            f"no checkpoint in {folder} is whole and healthy:\n{lines}\n"
            "  Start a new run, or name the folder of another checkpoint with resume.load."
        )
    return Choice(None, refused)


def _digest(content: Mapping[str, Any]) -> str:
    """The sha256 of a manifest's own content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def file_fault(file: Path, size: int, digest: str | None) -> str:
    """What is wrong with a file; "" if nothing is. Without a digest, only its size is compared."""
    try:
        with open(file, "rb") as opened:
            found = os.fstat(opened.fileno()).st_size
            if found != size:
                return f"has {found} of {size} bytes"
            if digest is None:
                return ""
            same = stream_sha256(opened) == digest
            return "" if same else "has another content than when it was saved"
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _files(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.is_file() and path != place / NAME)


def _replace(file: Path, text: str) -> None:
    """Writes a file so that after a crash it has the old content or the new one."""
    beside = file.with_name(f".{file.name}.{os.getpid()}.part")
    with open(beside, "w", encoding="utf-8") as opened:
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
    os.replace(beside, file)
    _flush_folder(file.parent)


def _flush_folder(folder: Path) -> None:
    """Flushes the names in a folder."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
