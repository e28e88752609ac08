"""Tensors of which each process holds shards."""

from .api import Shard, ShardedTensor
from .metadata import ShardedTensorMetadata, TensorProperties

__all__ = ["Shard", "ShardedTensor", "ShardedTensorMetadata", "TensorProperties"]
