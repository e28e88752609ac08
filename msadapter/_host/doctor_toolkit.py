"""The doctor's lines about the toolkit: conversions, packages that must not mix, Ray, and the simulated NPU.

Standard library only. A line is (name, value, whether it is wrong, what to do).
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALIAS = ROOT / "msadapter" / "alias"
# Packages that pip would only install together with PyTorch, and the file with their versions.
BESIDE_TORCH = ROOT / "megatron_ms" / "training" / "requirements-hf.txt"
# They are PyTorch itself, or work with its C++ library, which this project does not have.
OF_PYTORCH = ("torch", "torchvision", "torchaudio", "torch-npu", "triton", "deepspeed", "vllm", "flash-attn")
_PIN = re.compile(r"^([\w.-]+)==([\w.]+)")
_MARKER = re.compile(r"python_version (<|>=) ['\"]3\.(\d+)")
Line = tuple[str, str, bool, str]


def lines() -> Iterator[Line]:
    yield from _conversions()
    yield from _folders_of_packages()
    yield from _packages()
    yield from _packages_of_pytorch()
    yield from _ray()


def _conversions() -> Iterator[Line]:
    """The conversions of auto_convert.sh beside this package."""
    start = ROOT / "megatron_ms" / "convert" / "start.py"
    if not (ROOT / "auto_convert.sh").is_file() or not start.is_file():
        yield "conversions", "none here: auto_convert.sh belongs to the repository", False, ""
        return
    answer = subprocess.run(
        [sys.executable, str(start), "--list"], capture_output=True, text=True, timeout=60
    )
    if answer.returncode:
        words = answer.stderr.strip().splitlines() or ["no answer"]
        yield "conversions", words[-1], True, "bash auto_convert.sh --list shows the whole error"
        return
    for text in answer.stdout.splitlines():
        yield "conversion", text.strip(), False, ""


def _folders_of_packages() -> Iterator[Line]:
    """The packages of conversions that this Python sees: those of two conversions must not mix."""
    found = sorted({path for path in sys.path if re.search(r"/packages-(llm|rl)-[\w.]+$", path.rstrip("/"))})
    names = ", ".join(Path(path).name for path in found) or "none"
    mixed = len(found) > 1
    fix = "two conversions are sourced in one shell: open a new shell and source one env.sh" if mixed else ""
    yield "their packages", f"{names} on PYTHONPATH", mixed, fix
    beside = [name for name in _pins(BESIDE_TORCH) if _version_of(name)]
    if found and beside:
        yield (
            "two toolkits",
            f"{Path(found[0]).name} hides the transformers that {', '.join(beside)} were tested with",
            True,
            "run.backend: hf needs a shell without the env.sh of a conversion: unset PYTHONPATH, or open a new one",
        )


def _packages() -> Iterator[Line]:
    """The optional packages whose version is another one than the pinned."""
    wanted = {**_pinned_by_extras(), **_pins(BESIDE_TORCH)}
    versions = {name: _version_of(name) for name in wanted}
    other = [
        f"{name} {versions[name]} (tested: {wanted[name]})"
        for name in sorted(wanted)
        if versions[name] not in (None, wanted[name])
    ]
    there = sum(version is not None for version in versions.values())
    yield "optional packages", f"{there} of {len(wanted)} are installed", False, ""
    if other:
        yield "other versions", ", ".join(other), False, "pip install NAME==VERSION, if something fails there"
    absent = [name for name in _pins(BESIDE_TORCH) if versions[name] is None]
    if absent and BESIDE_TORCH.is_file():
        fix = f"pip install --no-deps -r {BESIDE_TORCH}, if you need run.backend: hf"
        yield "for backend hf", f"absent: {', '.join(absent)}", False, fix


def _packages_of_pytorch() -> Iterator[Line]:
    """Packages that need the real PyTorch. The metadata by which msadapter answers for torch are not PyTorch's."""
    found = []
    for one in importlib.metadata.distributions():
        name = (one.metadata["Name"] or "").lower().replace("_", "-")
        if name in OF_PYTORCH and ALIAS not in Path(str(one.locate_file(""))).resolve().parents:
            found.append(name)
    if found:
        yield (
            "PyTorch's own",
            f"{', '.join(sorted(set(found)))} in this environment",
            False,
            "they need the real PyTorch: keep them in another environment, pip uninstall them here",
        )


def _ray() -> Iterator[Line]:
    """Ray, and what an ended job of this user has left running."""
    version = _version_of("ray")
    yield "Ray", version or "absent: MindSpeed-RL alone needs it", False, ""
    left = sorted(_processes_of_ray())
    if left:
        shown = ", ".join(map(str, left[:5])) + (" ..." if len(left) > 5 else "")
        yield "Ray's processes", f"{len(left)} are running ({shown})", False, "if no job uses them: ray stop"


def _processes_of_ray() -> Iterator[int]:
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if place.stat().st_uid == os.getuid() and (place / "comm").read_text().strip() in (
                "raylet",
                "gcs_server",
            ):
                yield int(place.name)
        except OSError:  # it has ended meanwhile
            continue


def _pinned_by_extras() -> dict[str, str]:
    """Name -> version of what the extras of the installed msadapter pin."""
    try:
        stated = importlib.metadata.requires("msadapter") or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    return _pins_of(text for text in stated if "extra ==" in text)


def _pins(file: Path) -> dict[str, str]:
    """Name -> version of a list of requirements; {} without the file."""
    if not file.is_file():
        return {}
    return _pins_of(file.read_text(encoding="utf-8").splitlines())


def _pins_of(requirements: Iterable[str]) -> dict[str, str]:
    """Name -> version of the requirements that this Python has. Their markers have the two forms of _MARKER."""
    return {
        pin[1]: pin[2]
        for text in requirements
        if (pin := _PIN.match(text))
        and all((sign == "<") == (sys.version_info[1] < int(minor)) for sign, minor in _MARKER.findall(text))
    }


def _version_of(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
