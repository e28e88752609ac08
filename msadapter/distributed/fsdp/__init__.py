"""torch.distributed.fsdp: policies of fully sharded data parallelism. Sharding itself is not supported."""
from __future__ import annotations

from dataclasses import dataclass

from ...tensor import dtype
from .fully_sharded_data_parallel import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    FullyShardedDataParallel,
    MixedPrecision,
    ShardedOptimStateDictConfig,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictType,
)

__all__ = [
    "BackwardPrefetch",
    "CPUOffload",
    "CPUOffloadPolicy",
    "FSDPModule",
    "FullOptimStateDictConfig",
    "FullStateDictConfig",
    "FullyShardedDataParallel",
    "MixedPrecision",
    "MixedPrecisionPolicy",
    "OffloadPolicy",
    "ShardedOptimStateDictConfig",
    "ShardedStateDictConfig",
    "ShardingStrategy",
    "StateDictType",
    "fully_shard",
]


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Types of the parameters in use, of gradient reduction and of outputs; None keeps the original."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Where parameters wait between uses: on their device."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters, gradients and optimizer state wait in host memory."""

    pin_memory: bool = True


class FSDPModule:
    """What `fully_shard` makes of a module; only for isinstance checks here."""


def fully_shard(module, **kwargs):
    """Spreads the parameters of a module over a mesh."""
    raise NotImplementedError("torch.distributed.fsdp.fully_shard is not supported (docs/coverage.md)")
