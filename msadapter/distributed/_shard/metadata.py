"""The position of a shard in the global tensor."""

from dataclasses import dataclass


@dataclass
class ShardMetadata:
    """Offsets and sizes of a shard, and the process that holds it."""

    shard_offsets: list
    shard_sizes: list
    placement: object = None

    def __init__(self, shard_offsets, shard_sizes, placement=None):
        if len(shard_offsets) != len(shard_sizes):
            raise ValueError(
                f"shard_offsets and shard_sizes should have the same number of elements, found "
                f"{len(shard_offsets)} and {len(shard_sizes)} respectively"
            )
        if any(value < 0 for value in shard_offsets):
            raise ValueError("shard_offsets should be >=0")
        if any(value < 0 for value in shard_sizes):
            raise ValueError("shard_sizes should be >= 0")
        self.shard_offsets = list(shard_offsets)
        self.shard_sizes = list(shard_sizes)
        self.placement = placement

    def __hash__(self):
        return hash((tuple(self.shard_offsets), tuple(self.shard_sizes), str(self.placement)))
