"""Copies, hashes and replaces trees of files safely. Dangerous files are refused, and no tree of the user is removed."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import time
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from .rules import PatchError

MANIFEST = "manifest.json"
LARGEST = 256 << 20  # maximum bytes of a file
_MOST_LINKS = 40  # maximum number of links on a path, the same as in Linux
_SKIPPED_FOLDERS = {".git", "__pycache__"}
_GIT = (".git", "git~1")  # the second is its short name on Windows


def threads() -> int:
    """The number of workers that copy and hash."""
    return min(8, len(os.sched_getaffinity(0)) + 1)


def resolved(path: Path) -> Path:
    """The absolute path with all links resolved. Raises PatchError if the links form a cycle."""
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:  # pathlib raises RuntimeError for a cycle
        raise PatchError(f"{path} cannot be followed: {error}") from None


def contains(outer: Path, inner: Path) -> bool:
    """True if `inner` is `outer` or inside it, also through another name of the same folder, such as a bind mount."""
    outer, inner = resolved(outer), resolved(inner)
    if inner.is_relative_to(outer):
        return True
    try:
        wanted = outer.stat()
    except OSError:
        return False  # a folder that does not exist contains nothing
    for place in (inner, *inner.parents):
        try:
            if os.path.samestat(place.stat(), wanted):
                return True
        except OSError:
            continue  # it does not exist yet; its parent may
    return False


def check_apart(source: Path, destination: Path) -> None:
    """Raises PatchError if one of the folders contains the other, or both are the same."""
    if contains(source, destination) or contains(destination, source):
        raise PatchError(
            f"the source {source} and the destination {destination} contain one another; nothing is written"
        )


def files_of(tree: Path) -> list[Path]:
    """All files and links of the tree, sorted, without .git, caches and the manifest.

    Raises:
        PatchError: a folder cannot be read.
    """
    found: list[Path] = []
    for folder, folders, names in os.walk(tree, onerror=_unreadable):
        folders[:] = [name for name in folders if name not in _SKIPPED_FOLDERS]
        here = Path(folder)
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = [name for name in folders if name not in links]
        # a file .git, as in a worktree of git, leads to the repository of the source
        found += [here / name for name in names + links if not name.endswith(".pyc") and name != ".git"]
    return sorted(path for path in found if path != tree / MANIFEST)


def _unreadable(error: OSError) -> None:
    raise PatchError(f"{error.filename} cannot be read: {error.strerror}") from None


def check_source(tree: Path) -> list[Path]:
    """The files of a tree that may be copied.

    Raises:
        PatchError: a link would lead out of the copy, a file is not a regular one (a pipe, a device), it has more than
            LARGEST bytes, or some file systems would take its name for that of the manifest or of a repository.
    """
    found = files_of(tree)
    check_files(tree, found)
    return found


def check_files(tree: Path, found: Iterable[Path]) -> None:
    """Raises PatchError for a file that check_source would refuse."""
    for path in found:
        _check_kind(path)
        _check_spelling(path.relative_to(tree))
        if path.is_symlink():
            check_link(tree, path)


def _check_kind(path: Path) -> None:
    """Raises PatchError unless the path is a link, or a regular file with at most LARGEST bytes."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return
    if not stat.S_ISREG(status.st_mode):
        raise PatchError(f"{path} is neither a file nor a folder nor a link; nothing is written")
    if status.st_size > LARGEST:
        raise PatchError(f"{path} has {status.st_size} bytes, more than {LARGEST}; nothing is written")


def folded(name: str) -> str:
    """A name as file systems see it that ignore case, normalise Unicode, or skip invisible characters."""
    visible = "".join(letter for letter in name if unicodedata.category(letter) != "Cf")
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold()).rstrip(". ")


def _check_spelling(name: Path) -> None:
    """Raises PatchError for a second spelling of the manifest or of .git, whose hooks and settings git would run."""
    for part in name.parts:
        if part != ".git" and folded(part) in _GIT:
            raise PatchError(f"{name}: some file systems take {part!r} for .git; nothing is written")
    if folded(name.parts[0]) == MANIFEST and name.parts[0] != MANIFEST:
        raise PatchError(f"some file systems take {name.parts[0]!r} for {MANIFEST}; nothing is written")


def check_names(folder: Path, wanted: Iterable[str]) -> None:
    """Raises PatchError unless the folder holds exactly the files and links of these relative names.

    A file system that ignores case or normalises Unicode puts two names of the source into one file.
    """
    found = {os.path.relpath(os.path.join(place, name), folder) for place, name in _entries(folder)}
    if lost := sorted(set(wanted) - found):
        other = {folded(name): name for name in found}
        shown = ", ".join(repr(name) + _beside_name(other.get(folded(name))) for name in lost[:5])
        raise PatchError(
            f"the file system of {folder} does not keep these names apart, or changes them: {shown}"
        )


def _beside_name(other: str | None) -> str:
    return f" (there is {other!r})" if other else ""


def _entries(folder: Path) -> Iterator[tuple[str, str]]:
    """(folder, name) of every file and every link."""
    for place, folders, names in os.walk(folder, onerror=_unreadable):
        for name in names:
            yield place, name
        for name in folders:
            if os.path.islink(os.path.join(place, name)):
                yield place, name


def check_link(tree: Path, path: Path) -> None:
    """Raises PatchError unless the link, and each link on its path, stays inside the tree and inside any copy of the tree.

    An absolute link is refused, because in a copy it still leads to the original folder. So is a link that passes through
    the tree's own name, such as ../tree/file.
    """
    rest, links = list(path.relative_to(tree).parts), 0
    here: list[str] = []
    while rest:
        part = rest.pop(0)
        if part == "..":
            if not here:
                raise PatchError(f"{path} is a link out of the tree; it is not copied and nothing is written")
            here.pop()
            continue
        place = tree.joinpath(*here, part)
        if not place.is_symlink():
            here.append(part)
            continue
        target, links = os.readlink(place), links + 1
        if target.startswith("/"):
            raise PatchError(
                f"{path} is a link out of the tree: it names the absolute path {target}; nothing is written"
            )
        if links > _MOST_LINKS:
            raise PatchError(f"{path} is a link that leads in a circle; nothing is written")
        rest = [step for step in target.split("/") if step not in ("", ".")] + rest


def copy(source: Path, destination: Path, found: list[Path]) -> dict[str, str]:
    """Copies the files and returns {relative name: sha256}.

    Raises:
        PatchError: a link leads out of the copy, because the source was changed after the check; or the file system of the
            destination does not keep two names of the source apart.
    """
    for folder in sorted({path.parent for path in found}):
        (destination / folder.relative_to(source)).mkdir(parents=True, exist_ok=True)

    def one(path: Path) -> tuple[str, str]:
        name = path.relative_to(source)
        target = destination / name
        try:
            if path.is_symlink():
                os.symlink(os.readlink(path), target)
                return name.as_posix(), digest(target)
            content = path.read_bytes()
            with open(target, "xb") as file:  # never over another file of the source
                file.write(content)
        except FileExistsError:
            raise PatchError(
                f"the file system of {destination} does not keep {name} and another name of the source apart"
            ) from None
        shutil.copystat(path, target)
        return name.as_posix(), hashlib.sha256(content).hexdigest()

    with ThreadPoolExecutor(threads()) as pool:
        written = dict(pool.map(one, found))
    check_names(destination, map(str, (path.relative_to(source) for path in found)))
    for path in found:
        target = destination / path.relative_to(source)
        if target.is_symlink():
            check_link(destination, target)
    return written


def hashes(tree: Path, names: Iterable[str]) -> dict[str, str]:
    """{relative name: sha256} for those of the names that exist in the tree and are not reached through a link.

    Raises:
        PatchError: a file is not a regular one (reading a pipe would never end), or it has more than LARGEST bytes.
    """
    wanted = sorted(names)
    folders = sorted({parent.as_posix() for name in wanted for parent in PurePosixPath(name).parents})
    links = {folder for folder in folders if (tree / folder).is_symlink() and folder != "."}
    found = [
        name
        for name in wanted
        if os.path.lexists(tree / name)
        and not any(parent.as_posix() in links for parent in PurePosixPath(name).parents)
    ]
    for name in found:
        _check_kind(tree / name)
    with ThreadPoolExecutor(threads()) as pool:
        return dict(zip(found, pool.map(lambda name: digest(tree / name), found), strict=True))


def digest(path: Path) -> str:
    """The hexadecimal sha256 of a file; for a link, the hash of its target path."""
    content = os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes()
    return hashlib.sha256(content).hexdigest()


def stream_sha256(stream: BinaryIO) -> str:
    """The hexadecimal sha256 of the rest of a stream. It is read in blocks, because checkpoints are large."""
    whole = hashlib.sha256()
    while block := stream.read(1 << 20):
        whole.update(block)
    return whole.hexdigest()


def check_name(name: object) -> str:
    """Returns the name if it is a relative path inside a tree, with forward slashes and without `..`.

    Raises:
        ValueError: it is not.
    """
    if not isinstance(name, str) or "\0" in name or any(part in ("", ".", "..") for part in name.split("/")):
        raise ValueError(f"{name!r} is not the name of a file inside the tree")
    return name


def place_of(name: str, tree: Path, who: str) -> Path:
    """The path of the regular file that a rule or a manifest names. No part of the path may be a link.

    Links inside the tree are refused too, because a change through a link would change a different file.

    Raises:
        PatchError: the path leads out of the tree or through a link, or the file is missing.
    """
    try:
        parts = check_name(name).split("/")
    except ValueError:
        raise PatchError(f"{who}: the target {name!r} leads out of the tree") from None
    path = tree
    for part in parts:
        path = path / part
        if path.is_symlink():
            check_link(tree, path)
            raise PatchError(f"{who}: the target {name} is reached through the link {path}")
    if not path.is_file():
        raise PatchError(f"{who}: the target {name} is missing")
    return path


def read_target(name: str, tree: Path, who: str) -> tuple[str, bytes]:
    """Reads a file that a rule changes, as text and as bytes. The text keeps its line endings.

    Raises:
        PatchError: the path leads out of the tree, or the file is missing or not UTF-8.
    """
    raw = place_of(name, tree, who).read_bytes()
    try:
        return raw.decode("utf-8"), raw
    except UnicodeDecodeError as error:
        raise PatchError(f"{who}: the target {name} is not UTF-8 ({error}); nothing is written") from None


def untracked(tree: Path, known: Iterable[str]) -> list[str]:
    """What a user has added to a tree: the files and links that are not `known`, without Python's caches.

    A folder without any known file is one entry, which ends with a slash.
    """
    files = set(known)
    ours = {parent.as_posix() for name in files for parent in PurePosixPath(name).parents}
    found = []
    for folder, folders, names in os.walk(tree, onerror=_unreadable):
        here = Path(folder)
        links = [name for name in folders if (here / name).is_symlink()]
        added = []
        for name in sorted(set(folders) - set(links)):
            relative = (here / name).relative_to(tree).as_posix()
            if relative not in ours:
                added.append(name)
                if not _only_caches(here / name):
                    found.append(relative + "/")
        folders[:] = [name for name in folders if name not in links and name not in added]
        entries = [(here / name).relative_to(tree).as_posix() for name in (*names, *links)]
        found += [entry for entry in entries if entry not in files and entry != MANIFEST]
    return sorted(found)


def _only_caches(folder: Path) -> bool:
    """True for a folder __pycache__ that holds only what Python writes into it."""
    return folder.name == "__pycache__" and all(
        entry.name.endswith(".pyc") and entry.is_file() and not entry.is_symlink()
        for entry in folder.iterdir()
    )


def short_list(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _carry(old: Path, new: Path, names: Sequence[str]) -> None:
    """Moves what the user has added to a tree into the tree that replaces it, under the same names.

    A name that the new tree has itself, or that it reaches through a link, stays in the old tree.
    """
    carried = []
    for name in names:
        parents = [new / parent for parent in PurePosixPath(name).parents]
        if os.path.lexists(new / name) or any(place.is_symlink() for place in parents[:-1]):
            continue
        try:
            parents[0].mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):
            continue  # the new tree has a file where the old one had a folder
        os.rename(old / name, new / name)
        carried.append(name)
    if carried:
        print(f"    {new} keeps what is not upstream's: {short_list(carried)}", file=sys.stderr)


def strangers_in(tree: Path, known: Mapping[str, str]) -> list[str]:
    """The files of a tree that are not `known` by name and sha256, and would be lost if the tree were removed.

    This searches .git and all other folders except Python's caches.
    """
    found = []
    for folder, folders, names in os.walk(tree, onerror=_unreadable):
        here = Path(folder)
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = [name for name in folders if name not in links]
        for name in names + links:
            path = here / name
            relative = path.relative_to(tree).as_posix()
            cache = here.name == "__pycache__" and name.endswith(".pyc")
            if relative == MANIFEST or (cache and path.is_file() and not path.is_symlink()):
                continue
            kind = path.lstat().st_mode
            regular = stat.S_ISREG(kind) or stat.S_ISLNK(kind)
            if not regular or known.get(relative) != digest(path):
                found.append(relative)
    return sorted(found)


def keep_aside(path: Path) -> Path:
    """Renames a file or folder that may be the user's work, prints its new name, and returns its new path."""
    aside = aside_of(path)
    os.rename(path, aside)
    print(f"    {path} is not as it was written; it was kept as {aside}", file=sys.stderr)
    return aside


def aside_of(path: Path) -> Path:
    """An unused name beside `path`."""
    stamp = f"{path.name}.changed-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
    names = (stamp if not n else f"{stamp}-{n}" for n in range(10_000))
    return next(path.with_name(name) for name in names if not os.path.lexists(path.with_name(name)))


def replace_tree(new: Path, destination: Path, known: Mapping[str, str]) -> None:
    """Replaces destination by new with a rename. Files that a user has added to destination stay where they are.

    known: the sha256 of each file that was written into the old destination. That is removed only afterwards, and only if
    it holds nothing else any more. Otherwise it is kept under another name, which is printed.

    Raises:
        OSError: a rename failed. destination is then unchanged.
        PatchError: a rename failed, and restoring the old destination failed too. The message says where it is.
    """
    if not os.path.lexists(destination) or not os.listdir(destination):
        os.rename(new, destination)  # allowed if the destination is an empty folder
        return
    old = aside_of(destination)
    os.rename(destination, old)
    try:
        os.rename(new, destination)
    except BaseException as error:
        try:
            os.rename(old, destination)
        except OSError:
            raise PatchError(
                f"{destination} could not be replaced ({error}); its earlier content is now {old}"
            ) from error
        raise
    _carry(old, destination, untracked(old, known))
    if not strangers_in(old, known):
        shutil.rmtree(old)
    else:
        print(f"    {destination} was not as it was written; it was kept as {old}", file=sys.stderr)
