"""Tensors of which each process holds shards."""

from .api import Shard, ShardedTensor, ShardedTensorBase
from .metadata import ShardedTensorMetadata, TensorProperties

__all__ = ["Shard", "ShardedTensor", "ShardedTensorBase", "ShardedTensorMetadata", "TensorProperties"]
