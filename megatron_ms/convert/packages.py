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

from .environment import PYTHON, applying, clean_environment, pip_words
from .sources import Release
from .steps import ROOT, ChildError, ConvertError, Progress, digest, run, write_atomically

LISTS = ROOT / "megatron_ms" / "convert"


def requirements(release: Release) -> Path:
    """The file that lists the packages of a release."""
    return LISTS / f"requirements-{release.packages}.txt"


def folder_of(output: Path, release: Release) -> Path:
    """The folder of the packages. Releases with the same list share it."""
    return output / f"packages-{release.packages}"


def pins(release: Release) -> list[str]:
    """The requirements "name==version", one per line of the file and of those that it includes (-r FILE)."""
    return [pin for pin, _ in _lines(requirements(release))]


def _lines(file: Path) -> list[tuple[str, str]]:
    """The requirements of a file for this Python, each with its comment."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines():
        pin, _, comment = (part.strip() for part in line.partition("#"))
        if pin.startswith("-r "):
            found += _lines(file.with_name(pin.removeprefix("-r ").strip()))
        elif pin := applying(pin):
            found.append((pin, comment))
    return found


def _as_wheels(release: Release) -> str:
    """The option that refuses sources, but for packages whose comment says that there is no wheel: pip builds one."""
    names = [
        pin.split("==")[0] for pin, comment in _lines(requirements(release)) if "no wheel" not in comment
    ]
    return f"--only-binary={','.join(names)}"


def why_stale(output: Path, release: Release) -> str:
    """Why the packages must be installed again; "" if they are the pinned ones and complete."""
    folder = folder_of(output, release)
    if not folder.exists():
        return "Python packages: not installed yet"
    recorded = _recorded(folder)
    if recorded.get("files") != _files_of(folder):
        return f"Python packages: files in {folder} are missing, new or of another size"
    return "" if recorded.get("pins") == _pinned(release) else "Python packages: the list has changed since"


def install(
    output: Path, release: Release, cache: Path, logs: Path, progress: Progress, offline: bool = False
) -> bool:
    """Collects the wheels in the cache and unpacks them into a folder. Returns False if the folder is current.

    The folder appears complete, by a rename. A folder that was changed since it was written is renamed, not deleted.

    Raises:
        ConvertError: a wheel is neither in the cache nor on the package index.
    """
    if not why_stale(output, release):
        return False
    wheels, folder = cache / "wheels", folder_of(output, release)
    pip: list[str | Path] = [PYTHON, "-m", "pip", "--no-input"]
    from_cache: list[str | Path] = (
        ["--no-index", "--find-links", wheels] if offline else ["--find-links", wheels]
    )
    wanted: list[str | Path] = ["--no-deps", _as_wheels(release), "--requirement", requirements(release)]
    wheels.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=output))
    beside.chmod(0o755)
    try:
        run(
            [*pip, "wheel", *from_cache, "--wheel-dir", wheels, *wanted],
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
        if folder.is_symlink() or _recorded(folder).get("contents") != _contents_of(folder):
            keep_aside(folder)
        else:
            shutil.rmtree(folder)
    os.rename(beside, folder)
    recorded = {"pins": _pinned(release), "files": _files_of(folder), "contents": _contents_of(folder)}
    write_atomically(_record_of(folder), json.dumps(recorded, indent=1) + "\n")
    return True


def _record_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.json")


def _recorded(folder: Path) -> dict:
    try:
        return dict(json.loads(_record_of(folder).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}  # an unreadable file is treated as missing, so the step is done again


def _pinned(release: Release) -> str:
    return digest("\n".join(pins(release)), sys.version)


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
