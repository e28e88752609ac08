"""The options of the older FSDP wrapper, which programs import. The wrapper itself is not supported."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ..._errors import unsupported
from ...tensor import dtype


class ShardingStrategy(enum.Enum):
    """What is sharded: parameters, gradients and optimizer state; only the last two; nothing; or within a node."""

    FULL_SHARD = 1
    SHARD_GRAD_OP = 2
    NO_SHARD = 3
    HYBRID_SHARD = 4
    _HYBRID_SHARD_ZERO2 = 5


class BackwardPrefetch(enum.Enum):
    """When backward gathers the next parameters: before or after the current gradients are computed."""

    BACKWARD_PRE = 1
    BACKWARD_POST = 2


class StateDictType(enum.Enum):
    """The form of a state dict: unsharded, this rank's flat shard, or sharded tensors."""

    FULL_STATE_DICT = 1
    LOCAL_STATE_DICT = 2
    SHARDED_STATE_DICT = 3


@dataclass
class MixedPrecision:
    """The dtypes of parameters in use, gradient reduction and buffers; None keeps the original dtype."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass
class CPUOffload:
    """Whether parameters are offloaded to host memory."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """Whether a state dict is moved to host memory."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """An unsharded state dict, on every rank or only on rank 0."""

    rank0_only: bool = False


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """A state dict of sharded tensors."""

    _use_dtensor: bool = False


@dataclass
class OptimStateDictConfig:
    """Whether an optimizer's state dict is moved to host memory."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """An unsharded optimizer state dict, on every rank or only on rank 0."""

    rank0_only: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """An optimizer state dict of sharded tensors."""

    _use_dtensor: bool = False


class FullyShardedDataParallel:
    """The older wrapper that shards a module's parameters. It is not supported."""

    def __init__(self, *args, **kwargs):
        raise unsupported("torch.distributed.fsdp.FullyShardedDataParallel")
