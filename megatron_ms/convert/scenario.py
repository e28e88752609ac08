"""Scenarios with several upstreams: converts their trees, writes a lock file of the sources, and checks both."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from patches import PatchError, discover, verify
from patches.manager import read_manifest

from . import packages
from .sources import GitSource, Release, export, fetch, folder_of, release_of
from .steps import ROOT, ConvertError, Progress, digest, write_atomically
from .upstream import (
    _commit_of,
    _scratch,
    apply_rules,
    cached_helpers,
    check_checkout,
    copy_checkout,
    keep_what_is_not_ours,
)

LOCK = "lock.json"


@dataclass(frozen=True)
class Run:
    """The settings of one run of a scenario.

    `output` receives the trees, `cache` holds the git sources, `checkouts` maps names of sources to local checkouts,
    `packages` says whether the Python packages of the upstreams are installed, and `number` is the release ("": the default).
    """

    scenario: str
    output: Path
    cache: Path
    checkouts: Mapping[str, Path]
    offline: bool = False
    packages: bool = False
    number: str = ""

    @property
    def release(self) -> Release:
        return release_of(self.scenario, self.number or None)

    @property
    def sources(self) -> tuple[GitSource, ...]:
        return self.release.sources

    @property
    def name(self) -> str:
        """The name of the conversion."""
        return folder_of(self.scenario, self.release.number)

    @property
    def home(self) -> Path:
        """The folder of the trees, the lock file and env.sh."""
        return self.output / self.name

    def tree(self, source: GitSource) -> Path:
        return self.home / source.name

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
        keep_what_is_not_ours(work.tree(source))
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
    write_atomically(work.home / LOCK, json.dumps(lock_of(work), indent=1) + "\n")
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
            cached_helpers(place, work.cache, logs, progress)
        origin = origin | {"key": work.key(source)}
        log = logs / f"patches-{source.name}.log"
        apply_rules(source.rules, place, tree, origin, log, progress)


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
    pinned = packages.pins(work.release) if work.packages else []
    return {"scenario": work.scenario, "release": work.release.number, "sources": taken, "packages": pinned}


def check(work: Run) -> list[str]:
    """The reasons why trees, packages or the lock file are not current; empty if they are. Writes nothing."""
    found = [reason for source in work.sources if (reason := why_stale(work, source))]
    if work.packages and (reason := packages.why_stale(work.output, work.release)):
        found.append(reason)
    path = work.home / LOCK
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
