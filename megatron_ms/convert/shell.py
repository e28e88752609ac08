"""Writes the env.sh of each conversion, which sets up a shell so that `import torch` gives msadapter, and lists them."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from patches import PatchError, added
from patches.manager import read_manifest
from patches.tree import keep_aside, short_list

from .environment import VENV
from .places import check_characters
from .steps import ROOT, digest, write_atomically

_TEMPLATE = """\
# Written by auto_convert.sh. Use it with:  source {env}
# In this shell `python script.py` and `torchrun ...` then find torch (msadapter) and megatron. msadapter_off undoes it.
msadapter_off() {{
    [ -n "${{MSADAPTER_SHELL:-}}" ] || return 0
    export PATH="$MSADAPTER_OLD_PATH" PYTHONPATH="$MSADAPTER_OLD_PYTHONPATH" MSADAPTER_DEVICE="$MSADAPTER_OLD_DEVICE"
    export MSADAPTER_TRITON="${{MSADAPTER_OLD_TRITON:-}}" MSADAPTER_TORCH_VERSION="${{MSADAPTER_OLD_TORCH_VERSION:-}}"
    export PIP_CONSTRAINT="${{MSADAPTER_OLD_PIP_CONSTRAINT:-}}"
    [ -n "$PYTHONPATH" ] || unset PYTHONPATH
    [ -n "$MSADAPTER_DEVICE" ] || unset MSADAPTER_DEVICE
    [ -n "$MSADAPTER_TRITON" ] || unset MSADAPTER_TRITON
    [ -n "$MSADAPTER_TORCH_VERSION" ] || unset MSADAPTER_TORCH_VERSION
    [ -n "$PIP_CONSTRAINT" ] || unset PIP_CONSTRAINT
    unset ${{MSADAPTER_HOMES:-}}
    unset MSADAPTER_SHELL MSADAPTER_HOMES MSADAPTER_OLD_PATH MSADAPTER_OLD_PYTHONPATH MSADAPTER_OLD_DEVICE MSADAPTER_OLD_TRITON
    unset MSADAPTER_OLD_TORCH_VERSION MSADAPTER_OLD_PIP_CONSTRAINT
}}
# Another conversion's settings end first.
if [ "${{MSADAPTER_SHELL:-}}" != {output} ]; then msadapter_off; fi
if [ -z "${{MSADAPTER_SHELL:-}}" ]; then
    export MSADAPTER_SHELL={output}
    export MSADAPTER_OLD_PATH="$PATH" MSADAPTER_OLD_PYTHONPATH="${{PYTHONPATH:-}}"
    export MSADAPTER_OLD_DEVICE="${{MSADAPTER_DEVICE:-}}" MSADAPTER_OLD_TRITON="${{MSADAPTER_TRITON:-}}"
    export MSADAPTER_OLD_TORCH_VERSION="${{MSADAPTER_TORCH_VERSION:-}}" MSADAPTER_OLD_PIP_CONSTRAINT="${{PIP_CONSTRAINT:-}}"
    export PATH={shim}/bin:{venv}/bin:"$PATH"
    export PYTHONPATH={shim}:{megatron}"${{PYTHONPATH:+:$PYTHONPATH}}"
{torch}    # pip finds the version of PyTorch on PYTHONPATH, and keeps it and the packages that MindSpore needs.
    case "${{MSADAPTER_TORCH_VERSION:-}}" in
        {version} | {version}.*)
            export PYTHONPATH={older}:"$PYTHONPATH" PIP_CONSTRAINT="${{PIP_CONSTRAINT:+$PIP_CONSTRAINT }}"{older_constraints} ;;
        *) export PIP_CONSTRAINT="${{PIP_CONSTRAINT:+$PIP_CONSTRAINT }}"{constraints} ;;
    esac
    # The folders of the sources.
    {homes}
{answers}    # Determines torch.cuda.is_available(): true for cuda and npu (MindSpore's device), false for cpu.
    export MSADAPTER_DEVICE="${{MSADAPTER_DEVICE:-{device}}}"
{triton}    # Megatron requires this variable so that its kernels overlap in order. It has no effect here, but Megatron checks it.
    export CUDA_DEVICE_MAX_CONNECTIONS="${{CUDA_DEVICE_MAX_CONNECTIONS:-1}}"
fi
"""
_TRITON = """\
    # This Megatron imports triton and declares kernels, without calling them on a CPU.
    export MSADAPTER_TRITON="${MSADAPTER_TRITON:-1}"
"""
_ANSWERS = """\
    # Without CANN there is no vLLM, which these sources import: docs/reinforcement_learning.md.
    if [ -z "${{ASCEND_HOME_PATH:-}}" ]; then export PYTHONPATH="$PYTHONPATH":{folder}; fi
"""
_TORCH = """\
    # These sources were written for this version of PyTorch. msadapter says so in torch.__version__.
    export MSADAPTER_TORCH_VERSION="${{MSADAPTER_TORCH_VERSION:-{version}}}"
"""
_CHOICE = """\
# Written by auto_convert.sh: the conversion that was made last. Others: bash auto_convert.sh --list
. {env}
"""
RECORD = "conversion.json"
SHIM = ROOT / "msadapter" / "alias" / "shim"  # answers `import torch`
TORCH_OF_MINDSPEED = "2.7"  # the version of PyTorch that MindSpeed and MindSpeed-LLM were written for
_END = "# The sha256 of the lines above tells whether this file was changed by hand: "


def older_torch(version: str) -> Path:
    """The folder that tells importlib.metadata and pip an older version of PyTorch. It goes before SHIM on PYTHONPATH."""
    return SHIM.parent / "older" / version


def write_env(
    folder: Path,
    trees: Sequence[Path] = (),
    packages: Path | None = None,
    device: str = "cuda",
    megatron: Path | None = None,
    triton: bool = False,
    torch: str = "",
    answers: Path | None = None,
) -> Path:
    """Writes folder/env.sh and returns its path.

    trees: folders to put on PYTHONPATH (default: `megatron`, or folder/megatron); a variable such as MINDSPEED_LLM names each.
    packages: a folder of Python packages, searched after the trees. device: MSADAPTER_DEVICE if the user has not set it.
    triton: whether `import triton` must be answered. torch: the version of PyTorch that programs are told, such as 2.7 (default:
    the newest that msadapter knows). answers: a folder of packages that take the place of what needs an NPU.
    An env.sh that was changed by hand is renamed, not overwritten.

    Raises:
        ConvertError: a path contains a control character or a colon.
    """
    path = folder / "env.sh"
    found = [*(trees or [megatron or folder / "megatron"]), *([packages] if packages else [])]
    for place in (folder, ROOT, VENV, *found, *([answers] if answers else [])):
        check_characters(str(place), "env.sh")
    places = {
        "env": path,
        "output": folder,
        "device": device,
        "shim": SHIM,
        "older": older_torch(TORCH_OF_MINDSPEED),
        "venv": VENV,
    }
    names = [re.sub("[^A-Z0-9]", "_", tree.name.upper()) for tree in trees]
    homes = [f"{name}={shlex.quote(str(tree))}" for name, tree in zip(names, trees, strict=True)]
    text = _TEMPLATE.format(
        megatron=":".join(shlex.quote(str(place)) for place in found),
        homes=" ".join(["export", *homes, shlex.quote("MSADAPTER_HOMES=" + " ".join(names))]),
        triton=_TRITON if triton else "",
        torch=_TORCH.format(version=torch) if torch else "",
        answers=_ANSWERS.format(folder=shlex.quote(str(answers))) if answers else "",
        version=TORCH_OF_MINDSPEED,
        # pip divides the variable at spaces, which an address does not contain.
        constraints=shlex.quote((SHIM / "constraints.txt").as_uri()),
        older_constraints=shlex.quote((older_torch(TORCH_OF_MINDSPEED) / "constraints.txt").as_uri()),
        **{name: shlex.quote(str(place)) for name, place in places.items()},
    )
    return _write(path, text)


def choose(output: Path, env: Path) -> Path:
    """Writes output/env.sh, which sources the env.sh of one conversion, and returns its path."""
    return _write(output / "env.sh", _CHOICE.format(env=shlex.quote(str(env))))


def _write(path: Path, text: str) -> Path:
    if os.path.lexists(path) and not _as_written(path):
        keep_aside(path)
    write_atomically(path, text + _END + digest(text) + "\n")
    return path


def record(folder: Path, release: str, trees: Mapping[str, Path]) -> None:
    """Writes what `listed` shows of a conversion: its release, its Python, and its trees by name."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    content = {
        "release": release,
        "python": python,
        "trees": {name: str(tree) for name, tree in trees.items()},
    }
    write_atomically(folder / RECORD, json.dumps(content, indent=1) + "\n")


def listed(output: Path) -> list[str]:
    """A line for each conversion in an output folder, with a star at the one that output/env.sh sources."""
    lines = []
    for path in sorted(output.glob(f"*/{RECORD}")):
        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            trees = {str(name): Path(tree) for name, tree in known["trees"].items()}
            head = f"{path.parent.name:<14} {known['release']:<10} Python {known['python']:<6}"
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            lines.append(f"  {path.parent.name:<14} {path} cannot be read: {error}")
            continue
        env = path.parent / "env.sh"
        star = "*" if _as_written(output / "env.sh") and _is_choice(output / "env.sh", env) else " "
        lines.append(f"{star} {head} source {env}")
        lines += [f"    {_state(name, tree)}" for name, tree in trees.items()]
    return lines


def _is_choice(path: Path, env: Path) -> bool:
    return path.read_text(encoding="utf-8").startswith(_CHOICE.format(env=shlex.quote(str(env))))


def _state(name: str, tree: Path) -> str:
    """The version of a tree, and what was added to it."""
    try:
        manifest, names = read_manifest(tree), added(tree)
    except PatchError as error:
        return f"{name}: {error}"
    kept = f"; not upstream's: {short_list(names)}" if names else ""
    return f"{name} {manifest['version']}, {len(manifest['patches'])} rules, in {tree}{kept}"


def _as_written(path: Path) -> bool:
    """True if an env.sh is unchanged since write_env wrote it, judged by the hash in its last line."""
    if path.is_symlink() or not path.is_file():
        return False
    text, _, sha256 = path.read_text(encoding="utf-8", errors="surrogateescape").rpartition(_END)
    return digest(text) == sha256.strip()
