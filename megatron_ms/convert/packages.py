"""Installs the pinned Python packages that the converted trees import, in a separate folder.

The project's own environment thus stays unchanged.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from patches.tree import digest as content_sha256
from patches.tree import keep_aside

from .environment import PYTHON, clean_environment, pip_words
from .steps import ROOT, ChildError, ConvertError, Progress, digest, run, write_atomically

REQUIREMENTS = ROOT / "megatron_ms" / "convert" / "requirements-llm.txt"
FOLDER = "packages"


def pins() -> list[str]:
    """The requirements "name==version", one per line of the file."""
    lines = (line.split("#")[0].strip() for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line]


def why_stale(output: Path) -> str:
    """Why the packages must be installed again; "" if they are the pinned ones and complete."""
    folder = output / FOLDER
    if not folder.exists():
        return "Python packages: not installed yet"
    recorded = _recorded(output)
    if recorded.get("files") != _files_of(folder):
        return f"Python packages: files in {folder} are missing, new or of another size"
    return "" if recorded.get("pins") == _pinned() else "Python packages: the list has changed since"


def install(output: Path, cache: Path, logs: Path, progress: Progress, offline: bool = False) -> bool:
    """Downloads the wheels into the cache and unpacks them into a folder. Returns False if the folder is current.

    The folder appears complete, by a rename. A folder that was changed since it was written is renamed, not deleted.

    Raises:
        ConvertError: a wheel is neither in the cache nor on the package index.
    """
    if not why_stale(output):
        return False
    wheels, folder = cache / "wheels", output / FOLDER
    pip: list[str | Path] = [PYTHON, "-m", "pip", "--no-input"]
    from_cache: list[str | Path] = (
        ["--no-index", "--find-links", wheels] if offline else ["--find-links", wheels]
    )
    wanted: list[str | Path] = ["--no-deps", "--only-binary=:all:", "--requirement", REQUIREMENTS]
    wheels.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{FOLDER}.", suffix=".part", dir=output))
    beside.chmod(0o755)
    try:
        run(
            [*pip, "download", *from_cache, "--dest", wheels, *wanted],
            logs / "wheels.log",
            progress,
            clean_environment(),
        )
        run(
            [
                *pip,
                "install",
                "--no-index",
                "--find-links",
                wheels,
                "--no-compile",
                "--target",
                beside,
                *wanted,
            ],
            logs / "packages.log",
            progress,
            clean_environment(),
        )
    except ChildError as error:
        shutil.rmtree(beside, ignore_errors=True)
        hint = f"\n  --offline takes wheels from {wheels} alone: run once without it" if offline else ""
        raise ConvertError(
            pip_words(error, "the packages of the upstreams could not be installed") + hint
        ) from None
    if os.path.lexists(folder):
        if folder.is_symlink() or _recorded(output).get("contents") != _contents_of(folder):
            keep_aside(folder)
        else:
            shutil.rmtree(folder)
    os.rename(beside, folder)
    recorded = {"pins": _pinned(), "files": _files_of(folder), "contents": _contents_of(folder)}
    write_atomically(output / f"{FOLDER}.json", json.dumps(recorded, indent=1) + "\n")
    return True


def _recorded(output: Path) -> dict:
    try:
        return dict(json.loads((output / f"{FOLDER}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}  # an unreadable file is treated as missing, so the step is done again


def _pinned() -> str:
    return digest("\n".join(pins()), sys.version)


def _contents_of(folder: Path) -> str:
    """A hash of the contents of all files except Python's caches. It is checked before the folder is removed."""
    found = []
    for place, names, files in os.walk(folder):
        inside, cache = os.path.relpath(place, folder), os.path.basename(place) == "__pycache__"
        links = [name for name in names if os.path.islink(os.path.join(place, name))]
        wanted = [name for name in (*files, *links) if not (cache and name.endswith(".pyc"))]
        found += [f"{inside}/{name} {content_sha256(Path(place, name))}" for name in wanted]
    return digest("\n".join(sorted(found)))


def _files_of(folder: Path) -> str:
    """A hash of the names and sizes of all files except Python's caches."""
    found = []
    for place, names, files in os.walk(folder):
        names[:] = [name for name in names if name != "__pycache__"]
        inside = os.path.relpath(place, folder)
        found += [f"{inside}/{file} {os.lstat(os.path.join(place, file)).st_size}" for file in files]
    return digest("\n".join(sorted(found)))
