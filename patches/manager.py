"""Finds the rules of an upstream, applies them to a copy of its tree, and proves later that the copy is whole."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pkgutil
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

MANIFEST = "manifest.json"
MANIFEST_VERSION = 1
REASONS = ("temporary", "environment", "incompatible")
_NOT_COPIED = shutil.ignore_patterns(".git", "__pycache__", "*.pyc", MANIFEST)


class PatchError(Exception):
    """A rule, a tree or a manifest that is not what it should be. The message says which and what to do."""


@dataclass(frozen=True)
class Upstream:
    """A source tree that we change.

    version_file: the file whose presence tells that a tree is this upstream; read_version gets its text.
    since, before: versions v with since <= v < before are accepted.
    """

    name: str
    version_file: str
    read_version: Callable[[str], str]
    since: str
    before: str

    def version_of(self, tree: Path) -> str:
        """The version of the tree; an error if it is another upstream or outside the range."""
        path = tree / self.version_file
        if not path.is_file():
            raise PatchError(f"{tree} is not a {self.name} source tree: it has no {self.version_file}")
        version = self.read_version(path.read_text(encoding="utf-8"))
        if not _number(self.since) <= _number(version) < _number(self.before):
            raise PatchError(
                f"{tree} holds {self.name} {version}; the rules are for versions from {self.since} up to, "
                f"but without, {self.before}"
            )
        return version


@dataclass(frozen=True)
class Patch:
    """One rule.

    id: unique within its upstream. target: the file that it changes, relative, with forward slashes.
    reason: why it cannot be done without changing the source. reason_class: one of REASONS.
    fingerprints: sha256 of the target as upstream ships it, one for each version that the rule was checked with.
    """

    id: str
    target: str
    reason: str
    reason_class: str
    since: str
    before: str
    fingerprints: tuple[str, ...]
    edit: Callable[[str], str] = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.reason.strip() or self.reason_class not in REASONS:
            raise PatchError(
                f"{self.id}: a rule needs a reason, and a reason_class out of {', '.join(REASONS)}"
            )
        if not self.fingerprints:
            raise PatchError(f"{self.id}: a rule needs the sha256 of the target that it was written for")
        parts = PurePosixPath(self.target).parts
        if (
            not parts
            or self.target.startswith("/")
            or ".." in parts
            or "\\" in self.target
            or ":" in parts[0]
        ):
            raise PatchError(f"{self.id}: the target {self.target!r} must be a relative path inside the tree")

    def applies_to(self, version: str) -> bool:
        return _number(self.since) <= _number(version) < _number(self.before)


def upstreams() -> list[str]:
    """Names of the upstreams that have rules or a declaration here."""
    package = importlib.import_module(__package__ or "patches")
    return sorted(module.name for module in pkgutil.iter_modules(package.__path__) if module.ispkg)


def discover(name: str) -> tuple[Upstream, list[Patch]]:
    """The declaration of an upstream and its rules in the order of their file names.

    Raises:
        PatchError: no such upstream, a rule file without PATCH, or two rules of one id.
    """
    if name not in upstreams():
        raise PatchError(f"there is no upstream {name!r}; known: {', '.join(upstreams())}")
    package = importlib.import_module(f"{__package__}.{name}")
    patches: dict[str, Patch] = {}
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda entry: entry.name):
        rule = importlib.import_module(f"{package.__name__}.{module.name}")
        patch = getattr(rule, "PATCH", None)
        if not isinstance(patch, Patch):
            raise PatchError(f"{rule.__name__} defines no PATCH")
        if patch.id in patches:
            raise PatchError(f"two rules of {name} have the id {patch.id}")
        patches[patch.id] = patch
    return package.UPSTREAM, list(patches.values())


def apply(
    upstream: Upstream,
    patches: Iterable[Patch],
    source: Path,
    destination: Path,
    origin: Mapping[str, str] | None = None,
) -> dict:
    """Copies source to destination with the patches applied, and writes the manifest. All or nothing.

    destination is replaced if it exists. origin is written into the manifest as it is. Returns the manifest.

    Raises:
        PatchError: the tree is not the upstream, is already patched, a target is missing or differs from what the rule
            was written for, or an edit finds nothing. destination is then as it was.
    """
    if (source / MANIFEST).exists():
        raise PatchError(
            f"{source} is already patched (it has a {MANIFEST}): apply to the upstream's own tree"
        )
    version = upstream.version_of(source)
    destination.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{destination.name}.", suffix=".part", dir=destination.parent))
    try:
        copy = beside / "tree"
        _refuse_links_outside(source)
        shutil.copytree(source, copy, symlinks=True, ignore=_NOT_COPIED)
        applied = [_apply_one(patch, copy, version) for patch in patches if patch.applies_to(version)]
        manifest = {
            "manifest_version": MANIFEST_VERSION,
            "upstream": upstream.name,
            "version": version,
            "origin": dict(origin or {}),
            "patches": applied,
            "files": {path.relative_to(copy).as_posix(): digest(path) for path in _files(copy)},
        }
        (copy / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
        replace_tree(copy, destination)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return manifest


def verify(tree: Path) -> dict:
    """Proves that a patched tree is as apply() left it. Returns its manifest.

    Raises:
        PatchError: no manifest, or one that cannot be read, or files that are missing, changed or new.
    """
    try:
        manifest = json.loads((tree / MANIFEST).read_text(encoding="utf-8"))
        files = manifest["files"]
    except FileNotFoundError:
        raise PatchError(
            f"{tree} has no {MANIFEST}: it was not written by the converter, or only half"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise PatchError(f"{tree / MANIFEST} cannot be read: {error}") from error
    present = {path.relative_to(tree).as_posix(): path for path in _files(tree) if path.name != MANIFEST}
    present = {name: path for name, path in present.items() if "__pycache__" not in name.split("/")}
    wrong = [f"missing {name}" for name in files.keys() - present.keys()]
    wrong += [f"new {name}" for name in present.keys() - files.keys()]
    wrong += [
        f"changed {name}" for name in files.keys() & present.keys() if digest(present[name]) != files[name]
    ]
    if wrong:
        shown = ", ".join(sorted(wrong)[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        raise PatchError(f"{tree} is not as it was written: {shown}")
    return manifest


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


def digest(path: Path) -> str:
    """sha256 of a file, in hexadecimal; of a link, the hash of where it points."""
    content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
    return hashlib.sha256(content).hexdigest()


def _apply_one(patch: Patch, tree: Path, version: str) -> dict:
    path = tree / patch.target
    if not path.resolve().is_relative_to(tree.resolve()):
        raise PatchError(f"{patch.id}: the target {patch.target} leads out of the tree")
    if not path.is_file():
        raise PatchError(f"{patch.id}: the target {patch.target} is missing in version {version}")
    before = digest(path)
    if before not in patch.fingerprints:
        raise PatchError(
            f"{patch.id}: {patch.target} is not the file that the rule was written for (sha256 {before[:12]}...): "
            f"it is already changed, or upstream changed it; look at the rule again"
        )
    try:
        # Line ends stay as they are: newline="" both ways.
        with open(path, encoding="utf-8", newline="") as file:
            source = file.read()
        changed = patch.edit(source)
    except PatchError as error:
        raise PatchError(f"{patch.id}: {patch.target}: {error}") from error
    if changed == source:
        raise PatchError(f"{patch.id}: {patch.target}: the edit changes nothing")
    if path.suffix == ".py":
        try:
            compile(changed, patch.target, "exec", dont_inherit=True)
        except SyntaxError as error:
            raise PatchError(
                f"{patch.id}: {patch.target} does not compile after the edit: {error}"
            ) from error
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(changed)
    return {
        "id": patch.id,
        "target": patch.target,
        "reason_class": patch.reason_class,
        "reason": patch.reason,
        "sha256_before": before,
        "sha256_after": digest(path),
    }


def _files(tree: Path) -> list[Path]:
    return sorted(path for path in tree.rglob("*") if path.is_file() or path.is_symlink())


def _refuse_links_outside(tree: Path) -> None:
    root = tree.resolve()
    for path in tree.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            raise PatchError(f"{path} is a link out of the tree; it is not copied and nothing is written")


def _number(version: str) -> tuple[int, ...]:
    """(0, 12, 1) of '0.12.1rc1': enough to compare the releases of an upstream."""
    match = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in match.group().split(".")] if match else []
    if not numbers:
        raise PatchError(f"{version!r} is no version")
    return tuple(numbers + [0] * (4 - len(numbers)))
