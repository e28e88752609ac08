"""torch.__config__: how this package was built, as text."""

from __future__ import annotations

import platform
from pathlib import Path

from . import get_num_interop_threads, get_num_threads
from ._host import native, packaged
from .utils.collect_env import get_pretty_env_info


def show() -> str:
    """Return the versions of what this package was built with and its compiler options."""
    rows = [get_pretty_env_info(), f"Processor: {platform.machine()}", f"Compiler options: {_cxx_flags()}"]
    return "PyTorch built with:\n" + "".join(f"  - {row}\n" for row in "\n".join(rows).splitlines())


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
