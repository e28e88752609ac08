"""Trees of files: copied with their dangers refused, hashed, and put in place whole."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .rules import PatchError

MANIFEST = "manifest.json"
LARGEST = 256 << 20  # bytes of one file
_SKIPPED_FOLDERS = {".git", "__pycache__"}


def threads() -> int:
    """How many workers copy and hash."""
    return min(8, len(os.sched_getaffinity(0)) + 1)


def files_of(tree: Path) -> list[Path]:
    """Every file and link of the tree, sorted, without .git, caches and the manifest."""
    found: list[Path] = []
    for folder, folders, names in os.walk(tree):
        folders[:] = [name for name in folders if name not in _SKIPPED_FOLDERS]
        here = Path(folder)
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = [name for name in folders if name not in links]
        found += [here / name for name in names + links if not name.endswith(".pyc")]
    return sorted(path for path in found if path != tree / MANIFEST)


def check_source(tree: Path) -> list[Path]:
    """The files of a tree that may be copied.

    Raises:
        PatchError: a link out of the tree, a file that is none (a pipe, a device), one of more than LARGEST bytes.
    """
    root = tree.resolve()
    found = files_of(tree)
    for path in found:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            if not path.resolve().is_relative_to(root):
                raise PatchError(f"{path} is a link out of the tree; it is not copied and nothing is written")
        elif not stat.S_ISREG(status.st_mode):
            raise PatchError(f"{path} is no file, folder or link; nothing is written")
        elif status.st_size > LARGEST:
            raise PatchError(f"{path} has {status.st_size} bytes, more than {LARGEST}; nothing is written")
    return found


def copy(source: Path, destination: Path, found: list[Path]) -> dict[str, str]:
    """Copy the files; the sha256 of each, by its relative name."""
    for folder in sorted({path.parent for path in found}):
        (destination / folder.relative_to(source)).mkdir(parents=True, exist_ok=True)

    def one(path: Path) -> tuple[str, str]:
        name = path.relative_to(source)
        target = destination / name
        if path.is_symlink():
            os.symlink(os.readlink(path), target)
            return name.as_posix(), digest(target)
        content = path.read_bytes()
        target.write_bytes(content)
        shutil.copystat(path, target)
        return name.as_posix(), hashlib.sha256(content).hexdigest()

    with ThreadPoolExecutor(threads()) as pool:
        return dict(pool.map(one, found))


def hashes(tree: Path) -> dict[str, str]:
    """The sha256 of every file of the tree, by its relative name."""
    found = files_of(tree)
    with ThreadPoolExecutor(threads()) as pool:
        return dict(
            zip((path.relative_to(tree).as_posix() for path in found), pool.map(digest, found), strict=True)
        )


def digest(path: Path) -> str:
    """sha256 of a file, in hexadecimal; of a link, the hash of where it points."""
    content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
    return hashlib.sha256(content).hexdigest()


def read_target(name: str, tree: Path, who: str) -> tuple[str, bytes]:
    """A file that a rule changes, as text and as bytes; line ends stay in the text.

    Raises:
        PatchError: it leads out of the tree, is missing, or is not UTF-8.
    """
    path = tree / name
    if not path.resolve().is_relative_to(tree.resolve()):
        raise PatchError(f"{who}: the target {name} leads out of the tree")
    if not path.is_file():
        raise PatchError(f"{who}: the target {name} is missing")
    raw = path.read_bytes()
    try:
        return raw.decode("utf-8"), raw
    except UnicodeDecodeError as error:
        raise PatchError(f"{who}: the target {name} is not UTF-8 ({error}); nothing is written") from None


def replace_tree(new: Path, destination: Path) -> None:
    """new takes destination's place; what stood there goes only after new is in place."""
    old = destination.with_name(f".{destination.name}.old-{os.getpid()}")
    if destination.exists():
        os.rename(destination, old)
    try:
        os.rename(new, destination)
    except BaseException:
        if old.exists():
            os.rename(old, destination)
        raise
    shutil.rmtree(old, ignore_errors=True)
