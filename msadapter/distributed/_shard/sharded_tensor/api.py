"""A shard, and the tensor made of the shards of all processes."""

from dataclasses import dataclass

from ...._errors import unsupported
from ...setup import get_rank
from ..metadata import ShardMetadata


@dataclass
class Shard:
    """The data of a shard and its position in the global tensor."""

    tensor: object
    metadata: ShardMetadata

    @classmethod
    def from_tensor_and_offsets(cls, tensor, shard_offsets, rank):
        """A shard of this process."""
        placement = f"rank:{rank}/{tensor.device}"
        return cls(tensor, ShardMetadata(shard_offsets, list(tensor.size()), placement))


class ShardedTensorBase:
    """The class of all sharded tensors, by which programs recognize them. It is not made itself."""

    def __init__(self, sharding_spec, *size, **options):
        raise unsupported(
            "torch.distributed._shard.sharded_tensor.ShardedTensorBase",
            "sharding specifications are not supported",
        )

    def local_shards(self) -> list:
        """Shards of this process."""
        return self._local_shards

    def metadata(self):
        """The description of the whole."""
        return self._metadata


class ShardedTensor(ShardedTensorBase):
    """Shards of this process, with the description of the whole (made by Megatron for distributed
    checkpoints)."""

    def __init__(self, metadata, local_shards, process_group=None):
        self._metadata = metadata
        self._local_shards = list(local_shards)
        self._process_group = process_group

    @classmethod
    def _init_from_local_shards_and_global_metadata(
        cls, local_shards, sharded_tensor_metadata, process_group=None, init_rrefs=False, sharding_spec=None
    ):
        """Makes a sharded tensor from this process's shards. The metadata is not checked."""
        return cls(sharded_tensor_metadata, local_shards, process_group)

    def size(self, dim=None):
        """Size of the whole tensor."""
        return self._metadata.size if dim is None else self._metadata.size[dim]

    @property
    def dtype(self):
        return self._metadata.tensor_properties.dtype

    @property
    def requires_grad(self) -> bool:
        return self._metadata.tensor_properties.requires_grad

    def local_tensor(self):
        """The only shard of this process."""
        if len(self._local_shards) != 1:
            raise NotImplementedError("Only single local shard is supported.")
        return self._local_shards[0].tensor

    def __repr__(self):
        return f"ShardedTensor({self._metadata}) on rank {get_rank()}"
