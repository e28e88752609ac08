"""torch.multiprocessing: the standard library's module, which sends tensors through shared memory."""

import multiprocessing as _standard
from multiprocessing import *  # noqa: F403
from multiprocessing import get_context  # noqa: F401

from . import reductions as _reductions
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

init_reductions()


def get_all_sharing_strategies() -> set:
    """Return the names of the ways to send tensors."""
    return {"file_descriptor", "file_system"}


def get_sharing_strategy() -> str:
    """Return the name of the current way to send tensors."""
    return _reductions.get_strategy()


def set_sharing_strategy(new_strategy: str) -> None:
    """Choose how tensors are sent.

    Args:
        new_strategy: "file_descriptor" shares the memory of a tensor with the receiver. "file_system" sends a copy here, so that
            writes of the receiver do not reach the sender; it needs no open file for each tensor, and the sender may end before the
            tensor is received.
    """
    if new_strategy not in get_all_sharing_strategies():
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}")
    _reductions.set_strategy(new_strategy)
