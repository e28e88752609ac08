"""Writes build/env.sh, which sets up a shell so that `import torch` gives msadapter."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from patches.tree import keep_aside

from .environment import VENV
from .places import check_characters
from .steps import ROOT, digest, write_atomically

_TEMPLATE = """\
# Written by auto_convert.sh. Use it with:  source {env}
# In this shell `python script.py` and `torchrun ...` then find torch (msadapter) and megatron. msadapter_off undoes it.
if [ -z "${{MSADAPTER_SHELL:-}}" ]; then
    export MSADAPTER_SHELL={output}
    export MSADAPTER_OLD_PATH="$PATH" MSADAPTER_OLD_PYTHONPATH="${{PYTHONPATH:-}}"
    export MSADAPTER_OLD_DEVICE="${{MSADAPTER_DEVICE:-}}"
    export PATH={shim}/bin:{venv}/bin:"$PATH"
    export PYTHONPATH={shim}:{megatron}"${{PYTHONPATH:+:$PYTHONPATH}}"
    # The folders of the sources.
    {homes}
    # Determines torch.cuda.is_available(): true for cuda and npu (MindSpore's device), false for cpu.
    export MSADAPTER_DEVICE="${{MSADAPTER_DEVICE:-{device}}}"
    # Megatron requires this variable so that its kernels overlap in order. It has no effect here, but Megatron checks it.
    export CUDA_DEVICE_MAX_CONNECTIONS="${{CUDA_DEVICE_MAX_CONNECTIONS:-1}}"
fi
msadapter_off() {{
    [ -n "${{MSADAPTER_SHELL:-}}" ] || return 0
    export PATH="$MSADAPTER_OLD_PATH" PYTHONPATH="$MSADAPTER_OLD_PYTHONPATH" MSADAPTER_DEVICE="$MSADAPTER_OLD_DEVICE"
    [ -n "$PYTHONPATH" ] || unset PYTHONPATH
    [ -n "$MSADAPTER_DEVICE" ] || unset MSADAPTER_DEVICE
    unset MSADAPTER_SHELL MSADAPTER_OLD_PATH MSADAPTER_OLD_PYTHONPATH MSADAPTER_OLD_DEVICE{names}
}}
"""
_END = "# The sha256 of the lines above tells whether this file was changed by hand: "


def write_env(
    output: Path, trees: Sequence[Path] = (), packages: Path | None = None, device: str = "cuda"
) -> Path:
    """Writes output/env.sh and returns its path.

    trees: folders to put on PYTHONPATH (default: output/megatron); a variable such as MINDSPEED_LLM names each of them.
    packages: a folder of Python packages, searched after the trees. device: MSADAPTER_DEVICE if the user has not set it.
    An env.sh that was changed by hand is renamed, not overwritten.

    Raises:
        ConvertError: a path contains a control character or a colon.
    """
    path = output / "env.sh"
    for place in (output, ROOT, VENV, *trees, *([packages] if packages else [])):
        check_characters(str(place), "env.sh")
    places = {
        "env": path,
        "output": output,
        "device": device,
        "shim": ROOT / "msadapter" / "alias" / "shim",
        "venv": VENV,
    }
    found = [*(trees or [output / "megatron"]), *([packages] if packages else [])]
    names = [re.sub("[^A-Z0-9]", "_", tree.name.upper()) for tree in trees]
    homes = [f"{name}={shlex.quote(str(tree))}" for name, tree in zip(names, trees, strict=True)]
    text = _TEMPLATE.format(
        megatron=":".join(shlex.quote(str(place)) for place in found),
        homes=" ".join(["export", *homes]) if homes else ":",
        names=" ".join(["", *names]),
        **{name: shlex.quote(str(place)) for name, place in places.items()},
    )
    if os.path.lexists(path) and not _as_written(path):
        keep_aside(path)
    write_atomically(path, text + _END + digest(text) + "\n")
    return path


def _as_written(path: Path) -> bool:
    """True if an env.sh is unchanged since write_env wrote it, judged by the hash in its last line."""
    if path.is_symlink() or not path.is_file():
        return False
    text, _, sha256 = path.read_text(encoding="utf-8", errors="surrogateescape").rpartition(_END)
    return digest(text) == sha256.strip()
