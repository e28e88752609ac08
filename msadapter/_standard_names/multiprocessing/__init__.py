"""torch.multiprocessing: the standard library's module, which sends tensors through shared memory.

The receiver gets a copy of the tensor. Its writes do not reach the sender.
"""

import multiprocessing as _standard
from multiprocessing import *  # noqa: F403
from multiprocessing import get_context  # noqa: F401

from . import spawn as _spawn
from .reductions import init_reductions
from .spawn import (
    ProcessContext,
    ProcessException,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

__all__ = [
    *_standard.__all__,
    *_spawn.__all__,
    "get_all_sharing_strategies",
    "get_sharing_strategy",
    "set_sharing_strategy",
]

_strategy = ["file_system"]
init_reductions()


def get_all_sharing_strategies() -> set:
    """Return the names of the ways to send tensors."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """Return the name of the current way to send tensors."""
    return _strategy[0]


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how tensors are sent. Both choices use files in shared memory here."""
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}")
    _strategy[0] = new_strategy
