"""The class of rules, and the application of a rule to the text of one file."""

from __future__ import annotations

import ast
import hashlib
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from .drift import difference, fragments_beside

# "temporary" and "not yet": the adapter does not support it so far. "environment" and "device": the machine lacks
# something. "incompatible": the code is meant for another engine. "upstream bug": it fails with PyTorch too.
REASONS = ("temporary", "environment", "incompatible", "device", "upstream bug", "not yet")

_LARGEST_VERSION_FILE = 16 << 20  # bytes


class PatchError(Exception):
    """A rule, a tree or a manifest is wrong. The message names it and says what to do."""


def number(version: str) -> tuple[int, ...]:
    """The tuple (0, 12, 1) for '0.12.1rc1', which is sufficient to compare the releases of an upstream."""
    match = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in match.group().split(".")] if match else []
    if not numbers:
        raise PatchError(f"{version!r} is not a version number")
    return tuple(numbers + [0] * (4 - len(numbers)))


@dataclass(frozen=True)
class Upstream:
    """An upstream project whose source tree is changed.

    version_file: a file that identifies a tree of this upstream; read_version extracts the version from its text.
    since, before: versions v with since <= v < before are supported.
    newer: whether later versions are accepted, too. apply() then leaves out the rules that do not fit, and names them.
    """

    name: str
    version_file: str
    read_version: Callable[[str], str]
    since: str
    before: str
    newer: bool = False

    def covers(self, version: str) -> bool:
        """True for a version that the rules were written for."""
        return number(self.since) <= number(version) < number(self.before)

    def accepts(self, version: str) -> bool:
        """True for a version to which apply() applies rules."""
        return self.covers(version) or (self.newer and self.is_newer(version))

    def is_newer(self, version: str) -> bool:
        """True for a version after those that the rules were written for."""
        return number(version) >= number(self.before)

    def version_of(self, tree: Path, any_version: bool = False) -> str:
        """The version of the tree. Raises PatchError for another upstream, and, unless any_version, outside the range."""
        path = tree / self.version_file
        if not path.is_file():
            raise PatchError(f"{tree} is not a {self.name} source tree: it has no {self.version_file}")
        if not path.resolve().is_relative_to(tree.resolve()):
            raise PatchError(f"{path} leads out of the tree; nothing is written")
        if path.stat().st_size > _LARGEST_VERSION_FILE:
            raise PatchError(f"{path} has more than {_LARGEST_VERSION_FILE} bytes; nothing is written")
        try:
            version = self.read_version(path.read_text(encoding="utf-8"))
        except UnicodeDecodeError as error:
            raise PatchError(f"{path} is not UTF-8 ({error})") from None
        if not self.accepts(version) and not any_version:
            raise PatchError(
                f"{tree} holds {self.name} {version}; the rules are for versions from {self.since} up to, "
                f"but without, {self.before}"
            )
        return version


@dataclass(frozen=True)
class Patch:
    """A rule, which changes one file of an upstream.

    id: unique within its upstream. target: relative path of the file, with forward slashes.
    reason: why the source must be changed. reason_class: one of REASONS.
    symbol: the function or class that it changes ("Class.method"); "" for the whole file.
    fingerprints: sha256 of the original target, or of the symbol's source, one for each version.
    expected: the symbol's original source, for error messages; without it they show the fragments of the edit.
    link: the upstream bug. until: what would make the rule unnecessary. example: source before and after the edit.
    untouched: source in which the edit must find nothing.
    """

    id: str
    target: str
    reason: str
    reason_class: str
    since: str
    before: str
    fingerprints: tuple[str, ...]
    edit: Callable[[str], str] = field(repr=False, compare=False)
    symbol: str = ""
    expected: str = field(default="", repr=False)
    link: str = ""
    until: str = ""
    example: tuple[str, str] | None = field(default=None, repr=False)
    untouched: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        check_reason(self.id, self.reason, self.reason_class, self.link, self.until)
        if not self.fingerprints:
            raise PatchError(
                f"{self.id}: a rule needs fingerprints, the sha256 of the target that it was written for"
            )
        parts = PurePosixPath(self.target).parts
        if (
            not parts
            or self.target.startswith("/")
            or ".." in parts
            or "\\" in self.target
            or ":" in parts[0]
        ):
            raise PatchError(f"{self.id}: the target {self.target!r} must be a relative path inside the tree")

    @property
    def fragments(self) -> tuple[str, ...]:
        """The pieces of source that the edit looks for; empty if it works in another way."""
        return getattr(self.edit, "fragments", ())

    @property
    def range(self) -> str:
        """The versions that need the rule, in words."""
        return f"for {self.since} <= version < {self.before}"

    def applies_to(self, version: str) -> bool:
        return number(self.since) <= number(version) < number(self.before)


def check_reason(name: str, reason: str, reason_class: str, link: str, until: str) -> None:
    """Raises PatchError for a rule without a reason, or without its link or `until` where these are required."""
    if not reason.strip() or reason_class not in REASONS:
        raise PatchError(
            f"{name}: a rule needs a reason, and a reason_class that is one of {', '.join(REASONS)}"
        )
    if reason_class == "upstream bug" and not link:
        raise PatchError(f"{name}: a rule for an upstream bug needs its link, the address of the bug report")
    if reason_class == "not yet" and not until:
        raise PatchError(
            f"{name}: a rule of the class 'not yet' needs until, which says what would make the rule unnecessary"
        )


def fingerprint(source: str) -> str:
    """The sha256 of a definition, independent of its indentation and line endings."""
    text = textwrap.dedent(source.replace("\r\n", "\n")).strip()
    return hashlib.sha256(text.encode()).hexdigest()


def source_of(symbol: str, source: str, where: str) -> str:
    """The source of a function or class with its decorators.

    Raises:
        PatchError: the file does not parse, or does not define the name.
    """
    try:
        body: list[ast.stmt] = ast.parse(source).body
    except (SyntaxError, ValueError) as error:
        raise PatchError(f"{where} does not parse: {error}") from error
    found: ast.stmt | None = None
    for name in symbol.split("."):
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        found = next((one for one in reversed(body) if isinstance(one, kinds) and one.name == name), None)
        if found is None:
            raise PatchError(f"{where} has no function or class {symbol}")
        body = getattr(found, "body", [])
    first = min([found.lineno, *(d.lineno for d in getattr(found, "decorator_list", []))])  # type: ignore[union-attr]
    return "".join(source.splitlines(keepends=True)[first - 1 : found.end_lineno])  # type: ignore[union-attr]


def check_target(patch: Patch, original: str, raw: bytes) -> None:
    """Raises PatchError, with a diff if possible, if the target is not the file that the rule was written for.

    original, raw: upstream's target as text and as bytes.
    """
    if patch.symbol:
        found = source_of(patch.symbol, original, patch.target)
        good = fingerprint(found) in patch.fingerprints
        name = f"{patch.target}: {patch.symbol}"
        sha = fingerprint(found)
    else:
        found, name = original, patch.target
        sha = hashlib.sha256(raw).hexdigest()
        good = sha in patch.fingerprints
    if good:
        return
    shown = difference(patch.expected, found) if patch.expected else fragments_beside(patch.fragments, found)
    raise PatchError(
        f"{patch.id}: {name} is not the file that the rule was written for (sha256 {sha[:12]}...): "
        f"it is already changed, or upstream changed it; look at the rule again\n{shown}"
    )


def edited(patch: Patch, source: str) -> str:
    """The text after the rule's edit.

    Raises:
        PatchError: the edit finds nothing, changes nothing, or its result is not valid Python.
    """
    try:
        changed = patch.edit(source)
    except PatchError as error:
        raise PatchError(f"{patch.id}: {patch.target}: {error}") from error
    if changed == source:
        raise PatchError(f"{patch.id}: {patch.target}: the edit changes nothing")
    if patch.target.endswith(".py"):
        try:
            compile(changed, patch.target, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise PatchError(
                f"{patch.id}: {patch.target} does not compile after the edit: {error}"
            ) from error
    return changed


def check_example(patch: Patch) -> None:
    """Raises PatchError unless the edit maps the example to its result and finds nothing in the result or in `untouched`."""
    if patch.example is None or not patch.untouched:
        raise PatchError(f"{patch.id}: a rule needs an example (before, after) and an untouched source")
    before, after = patch.example
    found = edited(patch, before)
    if found != after:
        raise PatchError(
            f"{patch.id}: the edit does not turn the example's first text into its second:\n{difference(after, found)}"
        )
    for name, source in (("the untouched source", patch.untouched), ("its own result", after)):
        try:
            edited(patch, source)
        except PatchError:
            continue
        raise PatchError(f"{patch.id}: the edit changes {name}")
