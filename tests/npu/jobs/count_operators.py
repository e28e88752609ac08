"""Runs a script as the main program, and says at its end how often each of torch_npu's operators was called.

python count_operators.py SCRIPT [argument ...]: process 0 prints a line `operators {"name": calls, ...}`.
Operators of MindSpeed's own extensions are counted by `extension.name`.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import runpy
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import torch  # noqa: F401 it makes torch_npu importable
import torch_npu

from kernels_ascend import mindspeed

calls: Counter = Counter()


def counted(name: str, function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        calls[name] += 1
        return function(*args, **kwargs)

    return call


def watch() -> None:
    """Replaces every operator by one that counts its calls. It must run before other modules import the operators."""
    for name, function in torch_npu._OPERATORS.items():
        setattr(torch_npu, name, counted(name, function))
    for extension in mindspeed.EXTENSIONS:
        functions = vars(mindspeed.load(extension))
        mindspeed._loaded[extension] = SimpleNamespace(
            **{name: counted(f"{extension}.{name}", function) for name, function in functions.items()}
        )


def report() -> None:
    if os.environ.get("RANK", "0") == "0":
        # In one piece, on a line of its own: other processes write to the same stream.
        os.write(1, f"\noperators {json.dumps(dict(sorted(calls.items())))}\n".encode())


if __name__ == "__main__":
    watch()
    atexit.register(report)
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    runpy.run_path(sys.argv[0], run_name="__main__")
