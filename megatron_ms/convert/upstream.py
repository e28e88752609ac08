"""Converts Megatron Core, from a pinned wheel or commit or a local checkout, into a tree that Python can import."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from patches import MANIFEST, PatchError, added, discover, toml, verify
from patches.rules import number
from patches.tree import check_names, copy, keep_aside
from patches.tree import check_source as tree_files

from ..errors import see
from .environment import PYTHON, check_compiler, clean_environment, compiler, pip_download
from .sources import GitSource, Pin, Release, export, wheel_tag
from .steps import ROOT, ChildError, ConvertError, Progress, digest, file_sha256, run

UPSTREAM = "megatron_core"
HELPERS = Path("megatron/core/datasets")


def check_source(source: Path) -> str:
    """The version of a Megatron-LM checkout; ConvertError if it is not one, or if its version has no rules."""
    if not source.is_dir():
        raise ConvertError(f"--source {source}: there is no such folder")
    try:
        version = discover(UPSTREAM)[0].version_of(source)
        check_checkout(source)
        return version
    except PatchError as error:
        raise ConvertError(f"--source {source}: {error}") from None


def python_of(source: Path) -> str:
    """The Python versions that a checkout states in its pyproject.toml, such as ">=3.12"; "" if it states none."""
    try:
        project = toml.loads((source / "pyproject.toml").read_text(encoding="utf-8"))["project"]
        return str(project.get("requires-python", ""))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""  # check_source says what is wrong with the checkout


def is_newer(version: str) -> bool:
    """Whether a release imports triton and pydantic unconditionally."""
    return number(version) >= number("0.15.0")


def check_checkout(source: Path) -> list[Path]:
    """The files of a checkout that are copied.

    Raises:
        PatchError: it is already converted, or it contains a pipe, a huge file, or a link that would lead out of a copy.
    """
    if os.path.lexists(source / MANIFEST):
        raise PatchError(
            f"{source} is already patched (it has a {MANIFEST}): give the upstream's own tree {see('already-patched')}"
        )
    return tree_files(source)


def copy_checkout(source: Path, place: Path) -> None:
    """Copies a checkout, with its uncommitted changes, but without .git and caches."""
    place.mkdir()
    try:
        copy(source, place, check_checkout(source))
    except PatchError as error:
        raise ConvertError(str(error)) from None


def fetch_wheel(downloads: Path, logs: Path, progress: Progress, pin: Pin) -> bool:
    """Downloads the pinned wheel into `downloads`. A file of the same name with another hash is renamed and kept."""
    expected = pin.expected(wheel_tag())
    if wheel_in(downloads, expected) is not None:
        return False
    downloads.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=".download.", dir=downloads))
    try:
        pip_download(pin.requirement, beside, logs, progress)
        wheels = list(beside.glob("*.whl"))
        if len(wheels) != 1:
            raise ConvertError(f"pip left {len(wheels)} wheels for {pin.requirement}, not one")
        found = file_sha256(wheels[0])
        if found != expected:
            raise ConvertError(
                f"{wheels[0].name} is not the pinned file: {wheels[0].stat().st_size} bytes with sha256 {found}, "
                f"expected {expected}. The download is truncated or the index serves another file; nothing was kept "
                + see("another-file")
            )
        place = downloads / wheels[0].name
        if os.path.lexists(place):
            keep_aside(place)
        os.rename(wheels[0], place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    return True


def wheel_in(downloads: Path, sha256: str) -> Path | None:
    """The path of the wheel with this hash in the folder; None if there is none."""
    return next((path for path in sorted(downloads.glob("*.whl")) if file_sha256(path) == sha256), None)


def convert_wheel(home: Path, downloads: Path, logs: Path, progress: Progress, pin: Pin) -> bool:
    """Unpacks the wheel, applies the rules, and writes home/megatron. Returns False if the tree is current."""
    expected = pin.expected(wheel_tag())
    key = digest(expected, *_rules())
    if _up_to_date(home / "megatron", key):
        return False
    wheel = wheel_in(downloads, expected)
    if wheel is None:
        raise ConvertError(f"the wheel of {pin.requirement} is missing from {downloads}: run again")
    with _scratch(home) as scratch:
        unpack(wheel, scratch)
        _patch(
            scratch,
            home / "megatron",
            {"wheel": wheel.name, "sha256": expected, "key": key},
            logs,
            progress,
        )
    return True


def convert_git(source: GitSource, cache: Path, home: Path, logs: Path, progress: Progress) -> bool:
    """Writes home/megatron from a commit of Megatron-LM in the cache. Returns False if the tree is current."""
    key = digest(source.commit, *_rules(), sys.version)
    if _up_to_date(home / "megatron", key):
        return False
    with _scratch(home) as scratch:
        tree = scratch / "source"
        tree.mkdir()
        export(source, cache, tree)
        cached_helpers(tree, cache, logs, progress)
        origin = {"url": source.address(), "ref": source.ref, "commit": source.commit, "key": key}
        _patch(tree, home / "megatron", origin, logs, progress)
    return True


def convert_checkout(source: Path, home: Path, logs: Path, progress: Progress) -> bool:
    """Copies a Megatron-LM checkout, compiles its data set helper, applies the rules, and writes home/megatron."""
    key = digest(source, *_rules(), sys.version)
    if _up_to_date(home / "megatron", key):
        return False
    with _scratch(home) as scratch:
        tree = scratch / "checkout"
        copy_checkout(source, tree)
        compile_helpers(tree, logs, progress)
        origin = {"checkout": str(source.resolve()), "commit": _commit_of(source), "key": key}
        _patch(tree, home / "megatron", origin, logs, progress)
    return True


def unpack(wheel: Path, folder: Path) -> None:
    """Unpacks the wheel into a folder.

    Raises:
        ConvertError: the zip file is damaged, a name leads out of the folder, or two names would be one file.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            for name in names:
                if name.startswith("/") or ".." in Path(name).parts:
                    raise ConvertError(f"{wheel.name} contains a path that leads out of it: {name!r}")
            files = [os.path.normpath(name) for name in names if not name.endswith("/")]
            if twice := next((name for name, count in Counter(files).items() if count > 1), None):
                raise ConvertError(f"{wheel.name} contains {twice!r} more than once")
            archive.extractall(folder)
            check_names(folder, files)
    except PatchError as error:
        raise ConvertError(f"{wheel.name}: {error}") from None
    except (zipfile.BadZipFile, EOFError, OSError) as error:
        raise ConvertError(
            f"{wheel.name} cannot be unpacked ({error}): it is truncated, or it is not a wheel"
        ) from error


def compile_helpers(tree: Path, logs: Path, progress: Progress) -> None:
    """Compiles megatron.core.datasets.helpers_cpp. The wheel contains it compiled, a checkout does not."""
    source = tree / HELPERS / "helpers.cpp"
    if not source.is_file() or list((tree / HELPERS).glob("helpers_cpp*.so")):
        return
    check_compiler()
    include = run(
        [PYTHON, "-c", "import pybind11; print(pybind11.get_include())"],
        logs / "helpers.log",
        environment=clean_environment(),
    ).strip()
    library = source.with_name("helpers_cpp" + sysconfig.get_config_var("EXT_SUFFIX"))
    command: list[str | Path] = [
        compiler() or "g++",
        "-O3",
        "-shared",
        "-std=c++17",
        "-fPIC",
        f"-I{sysconfig.get_paths()['include']}",
        f"-I{include}",
        source,
        "-o",
        library,
    ]
    try:
        run(command, logs / "helpers.log", progress, clean_environment())
    except ChildError as error:
        raise ConvertError(f"Megatron's data set helper could not be compiled:\n{error.tail()}") from None


def cached_helpers(tree: Path, cache: Path, logs: Path, progress: Progress) -> None:
    """Provides Megatron's compiled data set helper; takes it from the cache if it was compiled from the same source before.

    The file gets the present time, so that Megatron's Makefile does not make it again.
    """
    source = tree / HELPERS / "helpers.cpp"
    if not source.is_file():
        return
    kept = cache / "helpers" / digest(source, sys.version)
    if kept.is_dir() and (found := list(kept.glob("helpers_cpp*.so"))):
        shutil.copyfile(found[0], source.parent / found[0].name)
        return
    compile_helpers(tree, logs, progress)
    if os.path.lexists(kept) and not kept.is_dir():
        keep_aside(kept)
    kept.mkdir(parents=True, exist_ok=True)
    for library in source.parent.glob("helpers_cpp*.so"):
        part = kept / f".{library.name}.{os.getpid()}"  # another process may write the same
        shutil.copy2(library, part)
        os.replace(part, kept / library.name)


def keep_what_is_not_ours(tree: Path) -> None:
    """Renames what is in the place of a tree and is not a tree of ours, because it may be the user's work.

    `patches.apply` does that for a tree of ours whose files were changed since.
    """
    if not os.path.lexists(tree):
        return
    try:
        if tree.is_symlink():
            raise PatchError(f"{tree} is a link")
        added(tree)
    except PatchError as error:
        print(error, file=sys.stderr)
        keep_aside(tree)


def apply_rules(
    upstream: str, tree: Path, destination: Path, origin: Mapping[str, str], log: Path, progress: Progress
) -> None:
    """Copy `tree` to `destination` with the rules of `upstream` applied. `origin` is stored in the manifest.

    Raises ConvertError with the end of `log` if a rule cannot be applied.
    """
    # Run in the environment's python, because a rule may need libcst.
    command: list[str | Path] = [PYTHON, "-m", "patches", "apply", upstream, tree, destination]
    command += ["--origin", json.dumps(origin)]
    try:
        output = run(command, log, progress, clean_environment() | {"PYTHONPATH": str(ROOT)})
    except ChildError as error:
        raise ConvertError(f"the rules could not be applied:\n{error.tail()}") from None
    for line in output.splitlines():  # what was kept or left out
        if line.startswith(("    ", "warning:")):
            print(line, file=sys.stderr)


def _patch(tree: Path, destination: Path, origin: Mapping[str, str], logs: Path, progress: Progress) -> None:
    keep_what_is_not_ours(destination)
    apply_rules(UPSTREAM, tree, destination, origin, logs / "patches.log", progress)


def _up_to_date(tree: Path, key: str) -> bool:
    try:
        return verify(tree)["origin"].get("key") == key
    except PatchError:
        return False  # damaged or absent: it is written again


def why_stale(home: Path, release: Release, checkout: Path | None) -> list[str]:
    """Why home/megatron must be written again: a list of one reason, or an empty list. Writes nothing."""
    tree = home / "megatron"
    if checkout is not None:
        check_source(checkout)
        key = digest(checkout, *_rules(), sys.version)
    elif wheel := wheel_of(release):
        key = digest(wheel.expected(wheel_tag()), *_rules())
    else:
        key = digest(release.sources[0].commit, *_rules(), sys.version)
    try:
        current = verify(tree)["origin"].get("key") == key
    except PatchError as error:
        return [str(error)]
    return [] if current else [f"{tree}: the source or the rules have changed since"]


def wheel_of(release: Release) -> Pin | None:
    """The wheels of a release if there is one for this Python and machine."""
    return release.wheel if release.wheel and wheel_tag() in release.wheel.sha256 else None


def _rules() -> list[Path]:
    return [ROOT / "patches"]


class _scratch:
    """A temporary folder beside the output, which is always removed at the end."""

    def __init__(self, output: Path) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=".convert.", suffix=".part", dir=output))

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.path, ignore_errors=True)


def _commit_of(source: Path) -> str:
    """The commit of the checkout for the manifest; "unknown" if git does not know it."""
    try:
        answer = subprocess.run(
            ["git", "-C", source, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=30
        )
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    commit = answer.stdout.strip()
    return commit if answer.returncode == 0 and re.fullmatch(r"[0-9a-f]{40,64}", commit) else "unknown"
