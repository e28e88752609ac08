"""The libraries that a wheel with kernels brings: which of them fits this machine, and whether it is whole.

``prebuild.py`` makes them. They are in the folder ``_prebuilt`` of the package: the C++ layer once for each instruction
set, the library of MindSpore's operators, and a manifest that says what they were made of, with the hash of each
file. A wheel without kernels has no such folder. Standard library only; see doctor.py.
"""

from __future__ import annotations

import json
import os
import re
import stat
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from . import cache, instructions
from .cache import BuildError
from .troubleshooting import see

FOLDER = Path(__file__).parents[1] / "_prebuilt"
MANIFEST = "manifest.json"
LIBRARY = "_C.so"
OPERATORS = "_operators.so"
_MEND = "Install msadapter again, or set MSADAPTER_CPU=native to compile the kernels on this machine"


@dataclass(frozen=True)
class Manifest:
    """What the libraries of a wheel were made of and for.

    `files` has the sha256 of each file by its path in the folder; `sets` the names of the instruction sets.
    """

    machine: str
    python: str
    mindspore: str
    glibc: str
    sources: str
    compiler: str
    sets: tuple[str, ...]
    files: dict[str, str]


def read(folder: Path) -> Manifest | None:
    """Return the manifest of a folder of libraries; None if the folder does not exist.

    Raises:
        BuildError: the folder has no manifest, or one that cannot be read or names files outside of the folder.
    """
    if not os.path.lexists(folder):
        return None
    path = folder / MANIFEST
    try:
        found = Manifest(**json.loads(path.read_text(encoding="utf-8")))
        found = Manifest(**{**vars(found), "sets": tuple(found.sets), "files": dict(found.files)})
        _check(found)
    except (OSError, ValueError, TypeError) as error:
        raise BuildError(
            f"the manifest of the package's kernels {path} cannot be read: {error}. Nothing is loaded from there. "
            f"{_MEND} {see('damaged-kernels')}"
        ) from None
    return found


def _check(manifest: Manifest) -> None:
    """ValueError if the values of a manifest are not of their kind."""
    texts = [
        getattr(manifest, name) for name in ("machine", "python", "mindspore", "glibc", "sources", "compiler")
    ]
    if not all(isinstance(text, str) for text in (*texts, *manifest.sets, *manifest.files.values())):
        raise ValueError("a value is not a text")
    wanted = {OPERATORS, *(f"{name}/{LIBRARY}" for name in manifest.sets)}
    if set(manifest.files) != wanted or any("/" in name or name in ("", ".", "..") for name in manifest.sets):
        raise ValueError(
            f"its files are {sorted(manifest.files)} and its instruction sets {sorted(manifest.sets)}"
        )


def why_not(manifest: Manifest, mindspore: str, sources: Callable[[], str]) -> str:
    """Why the libraries do not fit this installation; "" if they do.

    Args:
        mindspore: the version of MindSpore that is installed.
        sources: gives the hash of the installed C++ sources. It is called last, because it reads all of them.
    """
    soabi = sysconfig.get_config_var("SOABI") or ""
    if manifest.machine != instructions.machine():
        return f"they are for {manifest.machine}, and this is {instructions.machine()}"
    if manifest.python != soabi:
        return f"they are for {manifest.python}, and this is {soabi}"
    if manifest.mindspore != mindspore:
        return f"they are for mindspore {manifest.mindspore}, and {mindspore} is installed"
    if numbers(manifest.glibc) > numbers(_glibc()):
        return f"they need glibc {manifest.glibc}, and this machine has {_glibc()}"
    if manifest.sources != sources():
        return "the C++ sources of this installation are not those that they were compiled from"
    return ""


def library(mindspore: str, sources: Callable[[], str]) -> Path | None:
    """Return the library of the package that this process should load, or None if it has to be compiled.

    ``MSADAPTER_CPU`` chooses the instruction set. Without it, the best one that the processor can run is taken. Arguments as
    in `why_not`. The reason is printed if the package has libraries that do not fit.

    Raises:
        BuildError: the library is damaged or missing, or the processor cannot run the chosen set.
    """
    chosen = instructions.requested()
    if chosen == instructions.NATIVE or os.environ.get("MSADAPTER_SANITIZE"):
        return None
    manifest = read(FOLDER)
    if manifest is None:
        return None
    if reason := why_not(manifest, mindspore, sources):
        print(f"msadapter: the kernels of the package are not used: {reason}", file=sys.stderr, flush=True)
        return None
    name = chosen if chosen in manifest.sets else None if chosen else instructions.best(manifest.sets)
    return _whole(manifest, f"{name}/{LIBRARY}") if name else None


def owns(path: Path) -> bool:
    """Whether a library is one of the package's."""
    return path.parent.parent == FOLDER


def operators() -> Path:
    """Return the package's library of MindSpore's operators. BuildError if it is damaged or missing."""
    manifest = read(FOLDER)
    assert manifest is not None  # a library of the package is loaded
    return _whole(manifest, OPERATORS)


def instruction_set(path: Path) -> str:
    """Return the name of the instruction set of a library of the package."""
    return path.parent.name


def _whole(manifest: Manifest, name: str) -> Path:
    """Return the path of a file of the manifest. BuildError if it is not the file that the manifest describes."""
    path = FOLDER / name
    try:
        plain = stat.S_ISREG(path.lstat().st_mode)
        problem = (
            ""
            if plain and cache.file_sha256(path) == manifest.files[name]
            else "it is not the file that was built"
        )
    except OSError as error:
        problem = error.strerror or str(error)
    if problem:
        raise BuildError(
            f"a library of the package is damaged: {path}: {problem}. It is not loaded. {_MEND} {see('damaged-kernels')}"
        )
    return path


def _glibc() -> str:
    """Return the version of the C library of this machine, or "0" where it is not glibc."""
    try:
        return (os.confstr("CS_GNU_LIBC_VERSION") or "glibc 0").split()[-1]
    except (ValueError, OSError):
        return "0"


def numbers(version: str) -> list[int]:
    """Return the numbers of a version, for comparisons."""
    return [int(number) for number in re.findall(r"\d+", version)]
