"""The folder of built libraries: who may change it, whether a library is whole, and who is building.

What is loaded from there runs with all rights of the user. Standard library only; see doctor.py.
"""

from __future__ import annotations

import fcntl
import grp
import hashlib
import json
import os
import pwd
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .processes import state_of
from .troubleshooting import see

_TELL_AFTER, _TELL_EVERY = 2.0, 30.0  # seconds of waiting for another build
_PATIENCE = 3600.0  # seconds after which waiting is an error
_LEAST_FREE = 100 << 20  # bytes on the disk for a build


class BuildError(RuntimeError):
    """The C++ layer could not be built or must not be loaded. The message says what to do."""


# ---- who may change it


def why_untrusted(path: Path) -> str:
    """Why another user could change the file or folder `path`; "" if only root and this user can.

    Like ssh for keys, this checks the owner and the mode of the path itself and of every folder above it, up to the home folder
    or the root, with and without its links resolved.
    """
    whole = Path(os.path.abspath(path))
    home = Path.home()
    for way in dict.fromkeys((whole, Path(os.path.realpath(whole)))):
        for place in (way, *way.parents):
            if place == home and place != way:
                break  # whoever can change the home folder can change everything of this user
            if reason := _why_others_may_write(place):
                return reason
    return ""


def _why_others_may_write(place: Path) -> str:
    try:
        status = os.lstat(place)
    except FileNotFoundError:
        return ""  # it will be made by this user
    folder, mode = stat.S_ISDIR(status.st_mode), stat.S_IMODE(status.st_mode)
    if status.st_uid not in (0, os.geteuid()) and not (folder and _is_unmapped(place, status.st_uid)):
        return f"{place} belongs to user {status.st_uid}, not to root or to user {os.geteuid()}"
    if stat.S_ISLNK(status.st_mode) or (folder and mode & stat.S_ISVTX):
        return ""  # in a folder such as /tmp, entries of this user can be changed by this user alone
    if mode & 0o002:
        return f"everybody may write {place} (mode {mode:o}): chmod o-w {place}"
    if mode & 0o020 and not _is_private_group(status.st_gid):
        return f"its group may write {place} (mode {mode:o}): chmod g-w {place}"
    return ""


def _is_unmapped(place: Path, uid: int) -> bool:
    """Whether a folder belongs to a user outside of this user namespace, and cannot be written from inside."""
    try:
        overflow = int(Path("/proc/sys/kernel/overflowuid").read_text())
    except (OSError, ValueError):
        return False
    return uid == overflow and not os.access(place, os.W_OK)


def _is_private_group(gid: int) -> bool:
    """Whether a group has this user's name and number, and no other member (the default group of a Linux user)."""
    try:
        user, group = pwd.getpwuid(os.geteuid()), grp.getgrgid(gid)
    except KeyError:
        return False
    return gid == user.pw_gid and group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}


def make_folder(folder: Path) -> None:
    """Create a folder and those above it such that no other user can write to them, for any umask."""
    missing = [place for place in (folder, *folder.parents) if not place.exists()]
    for place in reversed(missing):
        place.mkdir(mode=0o755, exist_ok=True)


def check_root(root: Path) -> None:
    """Create the folder of the cache. BuildError if another user could change it."""
    make_folder(root)
    if reason := why_untrusted(root):
        raise BuildError(
            f"the cache of built libraries {root} is not safe: {reason}. Nothing is loaded from it. Mend that, or set "
            f"MSADAPTER_CACHE to a folder of your own {see('unsafe-cache')}"
        )


def set_aside_untrusted(folder: Path) -> None:
    """Rename a folder of the cache that another user could change. Its contents are not used any more."""
    if folder.exists() and (reason := _why_others_may_write(folder)):
        aside = folder.with_name(f"{folder.name}.untrusted-{int(time.time())}-{os.getpid()}")
        os.rename(folder, aside)
        print(f"msadapter: {reason}; it is kept as {aside} and built again", file=sys.stderr, flush=True)


# ---- whether a library is whole


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def record_of(library: Path) -> Path:
    """Return the file beside a library that holds its hash."""
    return library.with_name(library.name + ".json")


def _stamp(status: os.stat_result) -> list[int]:
    """The properties of a file that change when it is written or replaced."""
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def record(library: Path, sha256: str) -> None:
    """Write the hash of a library, and the state of the file for which it was computed."""
    text = json.dumps({"sha256": sha256, "stamp": _stamp(library.stat())})
    part = record_of(library).with_suffix(f".{os.getpid()}.part")
    part.write_text(text + "\n", encoding="utf-8")
    part.chmod(0o644)
    part.rename(record_of(library))


def why_damaged(library: Path, thorough: bool = False) -> str:
    """Why a library must be built again; "" if it is the one that was built.

    The hash is computed once. As long as size, times and inode do not change, the file counts as unchanged. `thorough` computes
    the hash in any case.
    """
    try:
        known = json.loads(record_of(library).read_text(encoding="utf-8"))
        sha256, stamp = known["sha256"], known["stamp"]
    except FileNotFoundError:
        return f"{library} has no record of its hash: its build was not finished"
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"{record_of(library)} cannot be read: {error}"
    for file in (library, record_of(library)):
        if reason := _why_others_may_write(file):
            return reason
    status = library.lstat()
    if not stat.S_ISREG(status.st_mode):
        return f"{library} is not a plain file"
    if stamp == _stamp(status) and not thorough:
        return ""
    if file_sha256(library) != sha256:
        return f"{library} is damaged: it is not the file that was built ({status.st_size} bytes)"
    if stamp != _stamp(status):
        try:
            record(library, sha256)
        except OSError:
            return ""  # a cache that may only be read: the hash is right all the same
    return ""


def is_ready(library: Path, thorough: bool = False) -> bool:
    """Whether a library can be loaded. BuildError if another user could change the folders that hold it.

    The reason is printed if a library is there and must be built again.
    """
    if not os.path.lexists(library):
        return False
    check_root(library.parents[1])
    reason = _why_others_may_write(library.parent) or why_damaged(library, thorough)
    if reason:
        print(f"msadapter: {reason}; it is built again", file=sys.stderr, flush=True)
    return not reason


# ---- who is building


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Let one process build at a time. A waiting process prints for which other one it waits.

    Raises:
        BuildError: the other build has not ended within an hour.
    """
    path = root / "lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    with open(handle, "r+", encoding="utf-8", errors="replace") as lock:
        begin, told = time.monotonic(), None
        while not _try_lock(lock):
            waited = time.monotonic() - begin
            if waited > _PATIENCE:
                raise BuildError(
                    f"after {waited:.0f} s another build still holds {path}: {_holder(path)} {see('another-build')}"
                )
            if waited > _TELL_AFTER and (told is None or waited - told > _TELL_EVERY):
                told = waited
                print(
                    f"msadapter: waiting {waited:.0f} s for {path}, held by {_holder(path)}",
                    file=sys.stderr,
                    flush=True,
                )
            time.sleep(0.1)
        lock.seek(0)
        lock.truncate()
        lock.write(f"{os.getpid()} {time.strftime('%Y-%m-%d %H:%M:%S')}\n")
        lock.flush()
        yield


def _try_lock(lock) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(path: Path) -> str:
    """A description of the process that holds the lock."""
    number, _, since = path.read_text(encoding="utf-8", errors="replace").strip().partition(" ")
    if not number.isdigit():
        return f"an unknown process (fuser {path} names it)"
    try:
        state = state_of(int(number))
        words = (
            Path(f"/proc/{number}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        )
    except OSError:
        state = None
    if state is None:
        return (
            f"process {number}, which has ended; a child of it still holds the lock (fuser {path} names it)"
        )
    stopped = f", which is stopped (kill -CONT {number} lets it go on)" if state in "Tt" else ""
    return f"process {number} since {since}: {words[:100]}{stopped}"


def check_space(root: Path) -> None:
    """BuildError if the disk does not have enough space for a build."""
    place = os.statvfs(root)
    free = place.f_bavail * place.f_frsize
    if free < _LEAST_FREE:
        raise BuildError(
            f"the disk of the cache {root} has {free >> 20} MB left, a build needs {_LEAST_FREE >> 20} MB: make room, or "
            f"set MSADAPTER_CACHE to a folder on another disk {see('full-disk')}"
        )
