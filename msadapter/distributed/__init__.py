"""torch.distributed."""

import importlib

from .aborting import reinit_process_group
from .collectives import _broadcast_coalesced
from .debug import set_debug_level, set_debug_level_from_env
from .device_mesh import DeviceMesh, init_device_mesh
from .distributed_c10d import *  # noqa: F403
from .distributed_c10d import (
    _all_gather_base,
    _coalescing_manager,
    _CoalescingManager,
    _get_process_group_name,
    _make_nccl_premul_sum,
    _rank_not_in_group,
    _reduce_scatter_base,
    _Work,
    is_available,
)
from .remote_device import _remote_device

# submodules that are imported on first access
_LAZY = (
    "_functional_collectives",
    "_shard",
    "algorithms",
    "checkpoint",
    "constants",
    "device_mesh",
    "distributed_c10d",
    "elastic",
    "nn",
    "run",
    "tensor",
    "_tensor",
    "utils",
    "launch",
    "fsdp",
    "optim",
    "_composable",
    "_composable_state",
    "_symmetric_memory",
    "autograd",
    "rpc",
    "pipelining",
)


class GradBucket:
    """The gradients of one bucket, which DistributedDataParallel passes to communication hooks."""

    def __init__(self, index, buffer, gradients, parameters, last):
        self._index, self._buffer, self._gradients = index, buffer, gradients
        self._parameters, self._last = parameters, last

    def index(self) -> int:
        return self._index

    def buffer(self):
        return self._buffer

    def gradients(self) -> list:
        return self._gradients

    def parameters(self) -> list:
        return self._parameters

    def is_last(self) -> bool:
        return self._last

    def set_buffer(self, buffer) -> None:
        self._buffer = buffer


def __getattr__(name):
    if name in _LAZY:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as err:
            raise AttributeError(f"torch.distributed.{name} is not supported (docs/coverage.md)") from err
    raise AttributeError(f"module 'torch.distributed' has no attribute {name!r}")
