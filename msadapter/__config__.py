"""torch.__config__: how this package was built, as text."""

from __future__ import annotations

import importlib.metadata
import platform
from pathlib import Path

from . import get_num_interop_threads, get_num_threads, version
from ._host import native, packaged
from .backends.cpu import get_cpu_capability


def show() -> str:
    """Return the versions of what this package was built with and its compiler options.

    Libraries call it while they are imported, so it starts no other process. `torch.utils.collect_env` tells more.
    """
    rows = [
        f"PyTorch interface {version.__version__}, answered by msadapter",
        f"MindSpore {importlib.metadata.version('mindspore')}",
        f"Processor: {platform.machine()}",
        f"CPU capability usage: {get_cpu_capability()}",
        f"Compiler options: {_cxx_flags()}",
    ]
    return "PyTorch built with:\n" + "".join(f"  - {row}\n" for row in rows)


def _cxx_flags() -> str:
    """Return the options with which the kernels were compiled."""
    path = Path(native.load().__file__)
    return " ".join(native.kernel_flags(packaged.instruction_set(path) if packaged.owns(path) else None))


def parallel_info() -> str:
    """Return the numbers of threads."""
    return (
        "ATen/Parallel:\n"
        f"\tat::get_num_threads() : {get_num_threads()}\n"
        f"\tat::get_num_interop_threads() : {get_num_interop_threads()}\n"
    )
