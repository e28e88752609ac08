"""Keeps the cache of built libraries below a size: what was used least recently is removed after a build.

A process that has loaded a library holds a shared lock in its folder, so a folder in use is never removed. Standard
library only; see doctor.py.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .cache import BuildError

VARIABLE = "MSADAPTER_CACHE_LIMIT"
DEFAULT = 4.0  # GB
WORK = "work."  # the name of the folder of a build that is under way begins with this
_GONE = "gone."  # and that of a folder that is being removed with this
_USED = "used"  # the file whose lock says that a folder is in use, and whose time says when it was
_RECENT = 3600.0  # seconds; longer than a build takes, so that no object of a build under way is removed
_OBJECT = re.compile(r".+-[0-9a-f]{20}\.o")
_REMNANT = re.compile(r".+\.\d+\.part")  # of a compiler that was killed
_HEADERS = re.compile(r"pch-O\w-[0-9a-f]{16}")
_LIBRARIES = re.compile(r"(simulated-npu-)?[0-9a-f]{20}")
_IN_LIBRARIES = re.compile(r"_(C|operators)\.so(\.json)?|used|.+\.part")


@dataclass(frozen=True)
class Entry:
    """Something of the cache that is removed as a whole."""

    path: Path
    size: int
    used: float

    @property
    def is_libraries(self) -> bool:
        """Whether it is a folder of libraries, which a process may have loaded."""
        return _LIBRARIES.fullmatch(self.path.name) is not None


def limit() -> float:
    """The largest size of the cache in bytes. BuildError if the variable holds no number."""
    text = os.environ.get(VARIABLE) or str(DEFAULT)
    try:
        size = float(text) * 1e9
    except ValueError:
        size = -1.0
    if not size >= 0:  # NaN is not either
        raise BuildError(f"{VARIABLE} must be a number of GB, such as {DEFAULT:g} or inf, not {text!r}")
    return size


def entries(root: Path) -> list[Entry]:
    """The entries of the cache that this project has made."""
    found = []
    for path in (*_in(root), *_in(root / "objects")):
        with suppress(FileNotFoundError):  # another process has removed it
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode) and _is_our_folder(path):
                found.append(Entry(path, _size(path), _last_use(path, status)))
            elif stat.S_ISREG(status.st_mode) and _is_our_file(path, root):
                found.append(Entry(path, status.st_size, status.st_mtime))
    return found


def _in(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except FileNotFoundError:
        return []


def _is_our_folder(path: Path) -> bool:
    if path.parent.name == "objects":
        return _HEADERS.fullmatch(path.name) is not None
    if path.name.startswith((WORK, _GONE, "simulated-npu-")):
        return True
    return _LIBRARIES.fullmatch(path.name) is not None and all(
        _IN_LIBRARIES.fullmatch(inside.name) for inside in _in(path)
    )


def _is_our_file(path: Path, root: Path) -> bool:
    return path.parent != root and bool(_OBJECT.fullmatch(path.name) or _REMNANT.fullmatch(path.name))


def _size(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.lstat(os.path.join(place, name)).st_size
    return total


def _last_use(folder: Path, status: os.stat_result) -> float:
    with suppress(FileNotFoundError):
        return (folder / _USED).lstat().st_mtime
    return status.st_mtime


# ---- who uses it


def touch(path: Path) -> None:
    """Note that something of the cache is used now."""
    with suppress(OSError):  # a cache that may only be read is not pruned by this user either
        os.utime(path)


def hold(folder: Path, library: Path) -> int | None:
    """Keep a folder of libraries from being removed as long as this process lives. `library` is a file in it.

    Returns the descriptor that holds the lock, or None if this user may not write the folder. FileNotFoundError if
    another process has removed the folder meanwhile; it must be built again.
    """
    place = folder / _USED
    try:
        handle = _open(place)
    except FileNotFoundError:
        raise
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        library.lstat()
        if not os.path.samestat(os.fstat(handle), place.lstat()):
            raise FileNotFoundError(2, "it was removed and built again", str(folder))
    except OSError:
        os.close(handle)
        raise
    touch(place)
    return handle


def _open(place: Path) -> int:
    return os.open(place, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)


# ---- removing


def prune(root: Path) -> list[Path]:
    """Remove what was used least recently until the cache is not larger than its limit. Returns what was removed.

    The caller holds the lock of the cache. What was used within the last hour stays, and so does a folder of libraries
    that a process has loaded. BuildError if the limit is not a number.
    """
    most, now, removed = limit(), time.time(), []
    known = entries(root)
    total = sum(entry.size for entry in known)
    for entry in sorted(known, key=lambda entry: entry.used):
        remnant = entry.path.name.startswith((WORK, _GONE)) or _REMNANT.fullmatch(entry.path.name)
        if now - entry.used < _RECENT or not (remnant or total > most):
            continue
        if _remove(entry):
            total -= entry.size
            removed.append(entry.path)
    return removed


def _remove(entry: Entry) -> bool:
    """Remove an entry. False if it is in use or may not be removed."""
    path = entry.path
    try:
        if not path.is_dir():
            path.unlink()
            path.with_name(path.name + ".sha256").unlink(missing_ok=True)
            return True
        with _alone_in(entry) as alone:
            if alone:
                gone = path.with_name(f"{_GONE}{path.name}.{os.getpid()}")
                os.rename(path, gone)  # at once, so that no process finds half of it
                shutil.rmtree(gone)
            return alone
    except OSError:  # another process has removed it, or it belongs to another user
        return not os.path.lexists(path)


@contextmanager
def _alone_in(entry: Entry) -> Iterator[bool]:
    """Whether no process has loaded a library of this folder. None can begin to until the end."""
    if not entry.is_libraries:
        yield True
        return
    handle = _open(entry.path / _USED)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        yield False
    else:
        yield True
    finally:
        os.close(handle)
