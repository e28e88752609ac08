"""Converts Megatron Core, from the pinned wheel or a local checkout, into a tree that Python can import."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from patches import MANIFEST, PatchError, discover, verify
from patches.tree import check_names, copy, keep_aside
from patches.tree import check_source as tree_files

from .environment import PYTHON, check_compiler, clean_environment, compiler, pip_download
from .steps import ROOT, ChildError, ConvertError, Progress, digest, file_sha256, run

UPSTREAM = "megatron_core"
HELPERS = Path("megatron/core/datasets")


@dataclass(frozen=True)
class Pin:
    """A pinned wheel on the package index: its requirement, and the sha256 of its file for each machine type."""

    requirement: str
    sha256: Mapping[str, str]

    def expected(self, machine: str) -> str:
        if machine not in self.sha256:
            known = ", ".join(sorted(self.sha256))
            raise ConvertError(
                f"{self.requirement} has wheels for {known}, this machine is {machine}: "
                "give a Megatron-LM checkout with --source"
            )
        return self.sha256[machine]


MEGATRON_CORE = Pin(
    requirement="megatron-core==0.12.1",
    sha256={
        "x86_64": "88b7dfcc240b810a72a90b8a85203049c687f4aa413150a2e22d79413b21d286",
        "aarch64": "6dea326f051bdb24b1c4147fd935719c221b6996bf213f5c5094e1fbe80f04be",
    },
)


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


def check_checkout(source: Path) -> list[Path]:
    """The files of a checkout that are copied.

    Raises:
        PatchError: it is already converted, or it contains a pipe, a huge file, or a link that would lead out of a copy.
    """
    if os.path.lexists(source / MANIFEST):
        raise PatchError(f"{source} is already patched (it has a {MANIFEST}): give the upstream's own tree")
    return tree_files(source)


def copy_checkout(source: Path, place: Path) -> None:
    """Copies a checkout, with its uncommitted changes, but without .git and caches."""
    place.mkdir()
    try:
        copy(source, place, check_checkout(source))
    except PatchError as error:
        raise ConvertError(str(error)) from None


def fetch_wheel(downloads: Path, logs: Path, progress: Progress, pin: Pin = MEGATRON_CORE) -> bool:
    """Downloads the pinned wheel into `downloads`. A file of the same name with another hash is renamed and kept."""
    expected = pin.expected(platform.machine())
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
                f"expected {expected}. The download is truncated or the index serves another file; nothing was kept"
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


def convert_wheel(output: Path, logs: Path, progress: Progress, pin: Pin = MEGATRON_CORE) -> bool:
    """Unpacks the wheel, applies the rules, and writes output/megatron. Returns False if the tree is current."""
    expected = pin.expected(platform.machine())
    key = digest(expected, *_rules())
    if _up_to_date(output / "megatron", key):
        return False
    wheel = wheel_in(output / "downloads", expected)
    if wheel is None:
        raise ConvertError(
            f"the wheel of {pin.requirement} is missing from {output / 'downloads'}: run again"
        )
    with _scratch(output) as scratch:
        unpack(wheel, scratch)
        _patch(
            scratch,
            output / "megatron",
            {"wheel": wheel.name, "sha256": expected, "key": key},
            logs,
            progress,
        )
    return True


def convert_checkout(source: Path, output: Path, logs: Path, progress: Progress) -> bool:
    """Copies a Megatron-LM checkout, compiles its data set helper, applies the rules, and writes output/megatron."""
    key = digest(source, *_rules(), sys.version)
    if _up_to_date(output / "megatron", key):
        return False
    with _scratch(output) as scratch:
        tree = scratch / "checkout"
        copy_checkout(source, tree)
        compile_helpers(tree, logs, progress)
        origin = {"checkout": str(source.resolve()), "commit": _commit_of(source), "key": key}
        _patch(tree, output / "megatron", origin, logs, progress)
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


def keep_what_the_user_changed(tree: Path) -> None:
    """Renames a tree that was changed since it was written, because the changes may be the user's work."""
    if not os.path.lexists(tree):
        return
    try:
        if tree.is_symlink():
            raise PatchError(f"{tree} is a link")
        verify(tree)
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
    command: list[str | Path] = [PYTHON, "-P", "-m", "patches", "apply", upstream, tree, destination]
    command += ["--origin", json.dumps(origin)]
    try:
        run(command, log, progress, clean_environment() | {"PYTHONPATH": str(ROOT)})
    except ChildError as error:
        raise ConvertError(f"the rules could not be applied:\n{error.tail()}") from None


def _patch(tree: Path, destination: Path, origin: Mapping[str, str], logs: Path, progress: Progress) -> None:
    keep_what_the_user_changed(destination)
    apply_rules(UPSTREAM, tree, destination, origin, logs / "patches.log", progress)


def _up_to_date(tree: Path, key: str) -> bool:
    try:
        return verify(tree)["origin"].get("key") == key
    except PatchError:
        return False  # damaged or absent: it is written again


def why_stale(output: Path, source: Path | None) -> list[str]:
    """Why output/megatron must be written again: a list of one reason, or an empty list. Writes nothing."""
    tree = output / "megatron"
    if source is None:
        key = digest(MEGATRON_CORE.expected(platform.machine()), *_rules())
    else:
        check_source(source)
        key = digest(source, *_rules(), sys.version)
    try:
        current = verify(tree)["origin"].get("key") == key
    except PatchError as error:
        return [str(error)]
    return [] if current else [f"{tree}: the source or the rules have changed since"]


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
