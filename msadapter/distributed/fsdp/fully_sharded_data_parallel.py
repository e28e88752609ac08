"""The older wrapper of fully sharded data parallelism: its options, which programs name. The wrapper itself is not supported."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from ...tensor import dtype


class ShardingStrategy(enum.Enum):
    """What is spread over the ranks: parameters, gradients and optimizer state; the last two; nothing; within a node."""

    FULL_SHARD = 1
    SHARD_GRAD_OP = 2
    NO_SHARD = 3
    HYBRID_SHARD = 4
    _HYBRID_SHARD_ZERO2 = 5


class BackwardPrefetch(enum.Enum):
    """When the next parameters are gathered in the backward pass: before or after the current gradients."""

    BACKWARD_PRE = 1
    BACKWARD_POST = 2


class StateDictType(enum.Enum):
    """Form of a state dict: whole, this rank's flat part, or sharded tensors."""

    FULL_STATE_DICT = 1
    LOCAL_STATE_DICT = 2
    SHARDED_STATE_DICT = 3


@dataclass
class MixedPrecision:
    """Types of parameters in use, of gradient reduction and of buffers; None keeps the original."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True


@dataclass
class CPUOffload:
    """Whether parameters wait in host memory."""

    offload_params: bool = False


@dataclass
class StateDictConfig:
    """Whether a state dict is moved to host memory."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """A whole state dict, on every rank or the first alone."""

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
    """A whole optimizer state dict, on every rank or the first alone."""

    rank0_only: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """An optimizer state dict of sharded tensors."""

    _use_dtensor: bool = False


class FullyShardedDataParallel:
    """A module whose parameters are spread over the ranks."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "torch.distributed.fsdp.FullyShardedDataParallel is not supported (docs/coverage.md)"
        )
