"""Finds the rules of an upstream, applies them to a copy of its tree, verifies the copy, and reverts it."""

from __future__ import annotations

import base64
import hashlib
import importlib
import json
import multiprocessing
import os
import pkgutil
import shutil
import stat
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .rules import REASONS, Patch, PatchError, Upstream, check_target, edited, number
from .runtime import RuntimePatch
from .tree import (
    LARGEST,
    MANIFEST,
    check_apart,
    check_files,
    check_name,
    check_source,
    copy,
    digest,
    files_of,
    hashes,
    place_of,
    read_target,
    replace_tree,
    resolved,
    short_list,
    untracked,
)

__all__ = [
    "MANIFEST",
    "REASONS",
    "Patch",
    "PatchError",
    "Upstream",
    "added",
    "apply",
    "digest",
    "discover",
    "files_of",
    "original_of",
    "plan",
    "replace_tree",
    "revert",
    "runtime_rules",
    "upstreams",
    "verify",
]

MANIFEST_VERSION = 2
_FEW = 8  # below this number of files with rules, worker processes do not pay off


def upstreams() -> list[str]:
    """Names of the upstreams that have rules or a declaration here."""
    package = importlib.import_module(__package__ or "patches")
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__) if module.ispkg)


def discover(name: str) -> tuple[Upstream, list[Patch]]:
    """The declaration of an upstream and its rules for the tree, in the order of their file names.

    Raises:
        PatchError: there is no such upstream, a rule file has no PATCH, or two rules have the same id.
    """
    package, rules = _rules_of(name)
    return package.UPSTREAM, [rule for rule in rules if isinstance(rule, Patch)]


def runtime_rules(name: str) -> list[RuntimePatch]:
    """The rules of an upstream that are applied when its modules are imported."""
    return [rule for rule in _rules_of(name)[1] if isinstance(rule, RuntimePatch)]


def _rules_of(name: str):  # type: ignore[no-untyped-def]
    if name not in upstreams():
        raise PatchError(f"there is no upstream {name!r}; known: {', '.join(upstreams())}")
    package = importlib.import_module(f"{__package__}.{name}")
    rules: dict[str, Patch | RuntimePatch] = {}
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda entry: entry.name):
        rule = importlib.import_module(f"{package.__name__}.{module.name}")
        patch = getattr(rule, "PATCH", None)
        if not isinstance(patch, (Patch, RuntimePatch)):
            raise PatchError(f"the module {rule.__name__} defines no PATCH, which every rule must define")
        if patch.id in rules:
            raise PatchError(f"two rules of {name} have the id {patch.id}")
        rules[patch.id] = patch
    return package, list(rules.values())


@dataclass(frozen=True)
class _File:
    """The rules of one file, and their result or error."""

    target: str
    patches: tuple[Patch, ...]
    source: bytes = b""
    steps: tuple[bytes, ...] = ()
    error: str = ""


def _grouped(patches: Iterable[Patch]) -> list[_File]:
    groups: dict[str, list[Patch]] = {}
    for patch in patches:
        groups.setdefault(patch.target, []).append(patch)
    return [_File(target, tuple(rules)) for target, rules in groups.items()]


def _edit_file(tree: Path, group: _File) -> _File:
    """Applies the rules of one file. Each rule is checked against the original file of upstream."""
    try:
        text, raw = read_target(group.target, tree, group.patches[0].id)
        steps, current = [], text
        for patch in group.patches:
            check_target(patch, text, raw)
            current = edited(patch, current)
            steps.append(current.encode("utf-8"))
    except PatchError as error:
        return _File(group.target, group.patches, error=str(error))
    return _File(group.target, group.patches, raw, tuple(steps))


_shared: tuple[Path, list[_File]] | None = (
    None  # inherited by forked workers, because a rule's functions may not be picklable
)


def _edit_numbered(place: int) -> tuple[bytes, tuple[bytes, ...], str]:
    assert _shared is not None
    done = _edit_file(_shared[0], _shared[1][place])
    return done.source, done.steps, done.error


def _may_fork() -> bool:
    """True if this process has a single thread. Forking with several threads can deadlock on a lock of another thread."""
    return len(os.listdir("/proc/self/task")) == 1


def _edit_all(tree: Path, groups: list[_File], jobs: int | None) -> list[_File]:
    """Applies the edits of all files, in parallel if there are many."""
    global _shared
    jobs = len(os.sched_getaffinity(0)) if jobs is None else jobs
    if jobs < 2 or len(groups) < _FEW or not _may_fork():
        return [_edit_file(tree, group) for group in groups]
    _shared = (tree, groups)
    try:
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            results = pool.map(_edit_numbered, range(len(groups)))
    finally:
        _shared = None
    return [_File(g.target, g.patches, *result) for g, result in zip(groups, results, strict=True)]


@contextmanager
def _beside(destination: Path) -> Iterator[Path]:
    """A temporary folder beside the destination, which is always removed at the end."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{destination.name}.", suffix=".part", dir=destination.parent))
    try:
        yield beside
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def apply(
    upstream: Upstream,
    patches: Iterable[Patch],
    source: Path,
    destination: Path,
    origin: Mapping[str, str] | None = None,
    jobs: int | None = None,
    keep: Callable[[str], bool] | None = None,
) -> dict:
    """Copies source to destination with the patches applied, and writes the manifest. Does all of this or nothing.

    destination may be absent, empty, or a tree that apply() wrote. Such a tree is replaced; what was added to it keeps its
    place, and if a file of it was changed since, the old tree is kept under another name. origin is written into the
    manifest. jobs is the number of processes for the edits.
    keep(relative name) selects the files to copy (default: all). Returns the manifest.

    Raises:
        PatchError: source and destination contain one another, apply() did not write the destination, source is not the
            upstream or is already patched, a target is missing or is not the file that the rule was written for, or an
            edit finds nothing. destination is then unchanged.
    """
    check_apart(source, destination)
    check_destination(destination)
    source, destination = resolved(source), resolved(destination)
    _refuse_patched(source)
    version = upstream.version_of(source)
    chosen = [patch for patch in patches if _is_for(patch, upstream, version)]
    found = check_source(source)
    if keep is not None:
        found = [path for path in found if keep(path.relative_to(source).as_posix())]
    groups = _edit_all(source, _grouped(chosen), jobs)
    drifted: list[str] = []
    wrong = [group.error for group in groups if group.error]
    if wrong and upstream.is_newer(version):
        drifted = [patch.id for group in groups if group.error for patch in group.patches]
        groups = [group for group in groups if not group.error]
    elif wrong:
        raise PatchError("\n".join(wrong).replace(" is missing", f" is missing in version {version}"))
    with _beside(destination) as beside:
        new = beside / "tree"
        new.mkdir()
        before = copy(source, new, found)
        manifest = _manifest(upstream, version, origin, groups, before, new)
        if upstream.is_newer(version):
            manifest["drifted"] = drifted
        (new / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        check_destination(destination)  # checked again, because it may have changed in the meantime
        replace_tree(new, destination, _known(destination))
    return manifest


def _is_for(patch: Patch, upstream: Upstream, version: str) -> bool:
    """Whether a rule is meant for a version. A later one than any known needs the rules that the last known one needs."""
    if upstream.newer and upstream.is_newer(version):
        return number(patch.before) >= number(upstream.before)
    return patch.applies_to(version)


def _known(destination: Path) -> dict[str, str]:
    """The files of a tree that apply() wrote; empty if there is none."""
    return read_manifest(destination)["files"] if (destination / MANIFEST).is_file() else {}


def check_destination(destination: Path) -> None:
    """Raises PatchError unless the destination is absent, an empty folder, or a tree that apply() wrote."""
    if not os.path.lexists(destination):
        return
    if destination.is_symlink() or not destination.is_dir():
        raise PatchError(
            f"{destination} is a link or a file, not a folder; nothing is written. Name another destination"
        )
    with os.scandir(destination) as entries:
        if next(entries, None) is None:
            return
    try:
        read_manifest(destination)
    except PatchError as error:
        raise PatchError(
            f"{destination} is a folder that this program did not write; nothing is written. "
            f"Name another destination, or move the folder away ({error})"
        ) from None


def _manifest(upstream, version, origin, groups, before, new) -> dict:  # type: ignore[no-untyped-def]
    """Writes the edited files into `new`, and returns the manifest."""
    after, applied, originals = dict(before), {}, {}
    for group in groups:
        if hashlib.sha256(group.source).hexdigest() != before.get(group.target):
            raise PatchError(
                f"{group.target} was changed while it was copied, or could not be copied; run the command again"
            )
        place_of(group.target, new, group.patches[0].id).write_bytes(group.steps[-1])
        after[group.target] = digest(new / group.target)
        originals[group.target] = base64.b85encode(zlib.compress(group.source, 9)).decode()
        for patch in group.patches:
            applied[patch.id] = {
                "id": patch.id,
                "target": patch.target,
                "symbol": patch.symbol,
                "reason_class": patch.reason_class,
                "reason": patch.reason,
                "sha256_before": before[group.target],
                "sha256_after": after[group.target],
            }
    return {
        "manifest_version": MANIFEST_VERSION,
        "upstream": upstream.name,
        "version": version,
        "origin": dict(origin or {}),
        "patches": list(applied.values()),
        "files": dict(sorted(after.items())),
        "originals": originals,
    }


def _refuse_patched(source: Path) -> None:
    if os.path.lexists(source / MANIFEST):
        raise PatchError(
            f"{source} is already patched (it has a {MANIFEST}): apply to the upstream's own tree"
        )


@dataclass(frozen=True)
class Planned:
    """The result of planning one rule. `status` is 'applies', 'other version' or 'wrong'; `note` gives details."""

    patch: Patch
    status: str
    note: str = ""


def plan(upstream: Upstream, patches: Iterable[Patch], source: Path) -> tuple[str, list[Planned]]:
    """Returns the tree's version, which may be any, and for each rule whether it applies. Writes nothing."""
    _refuse_patched(source)
    version = upstream.version_of(source, any_version=True)
    check_source(source)
    found = []
    for patch in patches:
        meant = _is_for(patch, upstream, version)
        if not meant and upstream.accepts(version):
            found.append(Planned(patch, "other version", patch.range))
            continue
        done = _edit_file(source, _File(patch.target, (patch,)))
        if done.error:
            found.append(Planned(patch, "wrong", done.error))
        elif not meant:
            found.append(Planned(patch, "other version", patch.range))
        else:
            found.append(Planned(patch, "applies"))
    return version, found


def read_manifest(tree: Path) -> dict:
    """Reads and checks the manifest of a patched tree. Raises PatchError if it is missing or invalid.

    A manifest may come from an untrusted source. The checks ensure that every name is a relative name inside the tree, that
    each rule's target has its original, and that each original belongs to a file of the tree.
    """
    path = tree / MANIFEST
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > LARGEST:
            raise ValueError(f"it is not a regular file, or has more than {LARGEST} bytes")
        manifest = json.loads(path.read_text(encoding="utf-8"))
        _check_shape(manifest)
        return manifest
    except FileNotFoundError:
        raise PatchError(
            f"{tree} has no {MANIFEST}, so it is not a complete tree of `python -m patches apply`; apply the rules again"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PatchError(f"{path} cannot be read: {error}") from error


def _check_shape(manifest: dict) -> None:
    """Raises some error, which read_manifest reports, if the manifest does not have the structure that apply() writes."""
    for table in ("files", "originals", "origin"):
        if not isinstance(manifest[table], dict):
            raise ValueError(f"the entry {table!r} must be an object")
    for name, content in [*manifest["files"].items(), *manifest["originals"].items()]:
        if not isinstance(content, str):
            raise ValueError(f"the entry of the file {name!r} must be a string")
        check_name(name)
    for name in manifest["originals"]:
        if name not in manifest["files"]:
            raise ValueError(f"it holds an original of {name!r}, but does not list this file in 'files'")
    for patch in manifest["patches"]:
        if patch["target"] not in manifest["originals"]:
            raise ValueError(
                f"it holds no original of {patch['target']!r}, which the rule {patch['id']!r} changed"
            )
        if not isinstance(patch["sha256_before"], str):
            raise ValueError(f"'sha256_before' of the rule {patch['id']!r} must be a string")
    for text in (manifest["upstream"], manifest["version"], *(patch["id"] for patch in manifest["patches"])):
        if not isinstance(text, str) or not text.isprintable():  # commands print these
            raise ValueError(
                f"'upstream', 'version' and the ids of rules must be printable strings, not {text!r}"
            )


def verify(tree: Path) -> dict:
    """Checks that the files of a patched tree are as apply() wrote them, and that its manifest can restore upstream's files.

    Files that were added since, such as data and checkpoints of a run, are the user's, and not looked at. Returns the manifest.

    Raises:
        PatchError: the manifest is missing or invalid, files are missing or changed, or an original is damaged.
    """
    manifest = read_manifest(tree)
    files, present = manifest["files"], hashes(tree, manifest["files"])
    wrong = [f"missing {name}" for name in files.keys() - present.keys()]
    wrong += [f"changed {name}" for name in files.keys() & present.keys() if present[name] != files[name]]
    wrong += [f"damaged original of {name}" for name in _damaged_originals(manifest)]
    if wrong:
        raise PatchError(f"{tree} has changed since it was written: {short_list(sorted(wrong))}")
    for name in manifest["originals"]:
        place_of(name, tree, MANIFEST)
    return manifest


def added(tree: Path) -> list[str]:
    """What was added to a patched tree since apply(): files and, with a slash, whole folders."""
    return untracked(tree, read_manifest(tree)["files"])


def _damaged_originals(manifest: dict) -> list[str]:
    """The files whose stored original is not the file to which the rules were applied."""
    damaged = []
    for name in manifest["originals"]:
        wanted = {patch["sha256_before"] for patch in manifest["patches"] if patch["target"] == name}
        try:
            found = {hashlib.sha256(original_of(manifest, name)).hexdigest()}
        except PatchError:
            found = set()
        if found != wanted or not found:
            damaged.append(name)
    return damaged


def original_of(manifest: dict, target: str) -> bytes:
    """The original bytes of a patched file."""
    try:
        packed = zlib.decompressobj()
        content = packed.decompress(base64.b85decode(manifest["originals"][target]), LARGEST)
        if not packed.eof:
            raise ValueError(f"it is truncated, or has more than {LARGEST} bytes")
        return content
    except (KeyError, ValueError, zlib.error) as error:
        raise PatchError(f"the manifest does not hold the original of {target}: {error}") from error


def revert(tree: Path) -> list[str]:
    """Restores upstream's files in a patched tree and removes the manifest. Returns the restored files.

    Raises:
        PatchError: the tree was changed since apply(), or its manifest names a file outside of it. Nothing is changed then.
    """
    tree = resolved(tree)
    manifest = verify(tree)
    changed = list(manifest["originals"])
    ours = sorted(tree / name for name in manifest["files"])
    check_files(tree, ours)
    with _beside(tree) as beside:
        new = beside / "tree"
        new.mkdir()
        copy(tree, new, ours)
        for target in changed:
            place_of(target, new, MANIFEST).write_bytes(original_of(manifest, target))
        replace_tree(new, tree, manifest["files"])
    return changed
