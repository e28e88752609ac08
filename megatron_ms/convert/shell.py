"""build/env.sh: a shell in which `import torch` is answered by this project."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from .environment import VENV
from .steps import ROOT, write_atomically

_TEMPLATE = """\
# Written by auto_convert.sh. Use it with:  source {env}
# In this shell `python script.py` and `torchrun ...` then find torch (msadapter) and megatron. msadapter_off undoes it.
if [ -z "${{MSADAPTER_SHELL:-}}" ]; then
    export MSADAPTER_SHELL={output}
    export MSADAPTER_OLD_PATH="$PATH" MSADAPTER_OLD_PYTHONPATH="${{PYTHONPATH:-}}"
    export MSADAPTER_OLD_DEVICE="${{MSADAPTER_DEVICE:-}}"
    export PATH={shim}/bin:{venv}/bin:"$PATH"
    export PYTHONPATH={shim}:{megatron}"${{PYTHONPATH:+:$PYTHONPATH}}"
    # What torch.cuda.is_available() answers: cuda and npu mean yes (MindSpore's device), cpu means no.
    export MSADAPTER_DEVICE="${{MSADAPTER_DEVICE:-cuda}}"
    # Megatron asks for one connection so that its kernels overlap in order; it means nothing here but is checked.
    export CUDA_DEVICE_MAX_CONNECTIONS="${{CUDA_DEVICE_MAX_CONNECTIONS:-1}}"
fi
msadapter_off() {{
    [ -n "${{MSADAPTER_SHELL:-}}" ] || return 0
    export PATH="$MSADAPTER_OLD_PATH" PYTHONPATH="$MSADAPTER_OLD_PYTHONPATH" MSADAPTER_DEVICE="$MSADAPTER_OLD_DEVICE"
    [ -n "$PYTHONPATH" ] || unset PYTHONPATH
    [ -n "$MSADAPTER_DEVICE" ] || unset MSADAPTER_DEVICE
    unset MSADAPTER_SHELL MSADAPTER_OLD_PATH MSADAPTER_OLD_PYTHONPATH MSADAPTER_OLD_DEVICE
}}
"""


def write_env(output: Path, trees: Sequence[Path] = ()) -> Path:
    """Writes output/env.sh and returns its path. trees: what Python shall find (output/megatron without them)."""
    path = output / "env.sh"
    places = {
        "env": path,
        "output": output,
        "shim": ROOT / "msadapter" / "alias" / "shim",
        "venv": VENV,
    }
    found = ":".join(shlex.quote(str(tree)) for tree in trees or [output / "megatron"])
    write_atomically(
        path,
        _TEMPLATE.format(megatron=found, **{name: shlex.quote(str(place)) for name, place in places.items()}),
    )
    return path
