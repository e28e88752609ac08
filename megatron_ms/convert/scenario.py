"""Scenarios with several upstreams: converts their trees, writes a lock file of the sources, and checks both."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from patches import PatchError, discover, verify
from patches.manager import read_manifest
from patches.tree import keep_aside

from . import packages
from .sources import SCENARIOS, GitSource, export, fetch
from .steps import ROOT, ConvertError, Progress, digest, write_atomically
from .upstream import (
    HELPERS,
    _commit_of,
    _scratch,
    apply_rules,
    check_checkout,
    compile_helpers,
    copy_checkout,
    keep_what_the_user_changed,
)

LOCK = "lock.json"


@dataclass(frozen=True)
class Run:
    """The settings of one run of a scenario.

    `output` receives the trees, `cache` holds the git sources, `checkouts` maps names of sources to local checkouts, and
    `packages` says whether the Python packages of the upstreams are installed.
    """

    scenario: str
    output: Path
    cache: Path
    checkouts: Mapping[str, Path]
    offline: bool = False
    packages: bool = False

    @property
    def sources(self) -> tuple[GitSource, ...]:
        return SCENARIOS[self.scenario]

    def tree(self, source: GitSource) -> Path:
        return self.output / self.scenario / source.name

    def key(self, source: GitSource) -> str:
        """A hash of what a tree depends on: the content of its source and the rules."""
        checkout = self.checkouts.get(source.name)
        content: str | Path = source.commit if checkout is None else checkout
        python = sys.version if source.rules == "megatron_core" else ""
        return digest(content, ROOT / "patches", python)


def fetch_all(work: Run, progress: Progress) -> bool:
    """Fetches every source that is not a local checkout into the cache."""
    did = False
    for source in work.sources:
        if source.name not in work.checkouts:
            progress.note = source.name
            did |= fetch(source, work.cache, work.offline)
    return did


def convert_all(work: Run, logs: Path, progress: Progress) -> bool:
    """Writes the trees that are not current, in parallel, and then the lock file. Each appears completely or not at all."""
    stale = [source for source in work.sources if why_stale(work, source)]
    for source in stale:
        keep_what_the_user_changed(work.tree(source))
    if stale:
        errors: list[str] = []
        lock = threading.Lock()

        def one(source: GitSource) -> None:
            try:
                _convert(work, source, logs, progress)
            except (ConvertError, PatchError) as error:
                with lock:
                    errors.append(f"{source.name}: {error}")

        with ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)))) as pool:
            list(pool.map(one, stale))
        if errors:
            raise ConvertError("\n".join(errors))
    write_atomically(work.output / work.scenario / LOCK, json.dumps(lock_of(work), indent=1) + "\n")
    return bool(stale)


def _convert(work: Run, source: GitSource, logs: Path, progress: Progress) -> None:
    checkout = work.checkouts.get(source.name)
    tree = work.tree(source)
    tree.parent.mkdir(parents=True, exist_ok=True)
    with _scratch(work.output) as scratch:
        if checkout is None:
            place = scratch / "source"
            place.mkdir()
            export(source, work.cache, place)
            origin = {"url": source.address(), "ref": source.ref, "commit": source.commit}
        else:
            place = checkout
            origin = {"checkout": str(checkout), "commit": _commit_of(checkout)}
        if source.rules == "megatron_core":
            if checkout is not None:
                place = scratch / "source"
                copy_checkout(checkout, place)
            _helpers(place, work.cache, logs, progress)
        origin = origin | {"key": work.key(source)}
        log = logs / f"patches-{source.name}.log"
        apply_rules(source.rules, place, tree, origin, log, progress)


def _helpers(tree: Path, cache: Path, logs: Path, progress: Progress) -> None:
    """Provides Megatron's compiled data set helper; takes it from the cache if it was compiled from the same source before."""
    source = tree / HELPERS / "helpers.cpp"
    if not source.is_file():
        return
    kept = cache / "helpers" / digest(source, sys.version)
    if kept.is_dir() and (found := list(kept.glob("helpers_cpp*.so"))):
        shutil.copy2(found[0], source.parent)
        return
    compile_helpers(tree, logs, progress)
    beside = kept.with_name(f".{kept.name}.{os.getpid()}")
    beside.mkdir(parents=True, exist_ok=True)
    for library in source.parent.glob("helpers_cpp*.so"):
        shutil.copy2(library, beside)
    if os.path.lexists(kept):
        keep_aside(kept)
    os.rename(beside, kept)


def why_stale(work: Run, source: GitSource) -> str:
    """Why the tree of a source must be written again; "" if it is current and complete."""
    tree = work.tree(source)
    if not tree.exists():
        return f"{source.name}: not converted yet"
    try:
        manifest = read_manifest(tree)
        if manifest["origin"].get("key") != work.key(source):
            return f"{source.name}: the source or the rules have changed since"
        verify(tree)
    except PatchError as error:
        return f"{source.name}: {error}"
    return ""


def lock_of(work: Run) -> dict:
    """The content of the lock file: each source's origin, commit, version, rules and hash of files, and the packages."""
    taken = {}
    for source in work.sources:
        manifest = read_manifest(work.tree(source))
        origin = {name: value for name, value in manifest["origin"].items() if name != "key"}
        taken[source.name] = origin | {
            "upstream": manifest["upstream"],
            "version": manifest["version"],
            "rules": [patch["id"] for patch in manifest["patches"]],
            "files": len(manifest["files"]),
            "sha256": digest(json.dumps(manifest["files"], sort_keys=True)),
        }
    return {"scenario": work.scenario, "sources": taken, "packages": packages.pins() if work.packages else []}


def check(work: Run) -> list[str]:
    """The reasons why trees, packages or the lock file are not current; empty if they are. Writes nothing."""
    found = [reason for source in work.sources if (reason := why_stale(work, source))]
    if work.packages and (reason := packages.why_stale(work.output)):
        found.append(reason)
    path = work.output / work.scenario / LOCK
    if not found:
        try:
            recorded = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return [f"{path} is missing or cannot be read"]
        if recorded != lock_of(work):
            found.append(f"{path} does not match the trees")
    return found


def check_checkouts(work: Run) -> None:
    """Raises ConvertError, before any work, if a checkout is not of its upstream or of a version without rules."""
    for source in work.sources:
        if source.name in work.checkouts:
            try:
                discover(source.rules)[0].version_of(work.checkouts[source.name])
                check_checkout(work.checkouts[source.name])
            except PatchError as error:
                raise ConvertError(f"--source {source.name}: {error}") from None
