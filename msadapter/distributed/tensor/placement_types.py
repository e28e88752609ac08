"""Placements: how a tensor is distributed over one dimension of a mesh."""

from __future__ import annotations

from dataclasses import dataclass

from ...nn import functional


class Placement:
    """Base of the placements."""

    def is_shard(self, dim=None) -> bool:
        """True if the tensor is sharded (along `dim`, if it is given)."""
        return isinstance(self, Shard) and dim in (None, getattr(self, "dim", None))

    def is_replicate(self) -> bool:
        """True if the tensor is replicated on every process."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op=None) -> bool:
        """True if the tensor still has to be reduced (by `reduce_op`, if it is given)."""
        return isinstance(self, Partial) and reduce_op in (None, getattr(self, "reduce_op", None))


@dataclass(frozen=True)
class Shard(Placement):
    """Sharded along a dimension into parts of ceil(size / ranks) elements; the last ones are shorter or empty."""

    dim: int

    def __repr__(self):
        return f"Shard(dim={self.dim})"

    def __str__(self):
        return f"S({self.dim})"

    @staticmethod
    def local_shard_size_and_offset(curr_local_size: int, num_chunks: int, rank: int) -> tuple:
        """The (size, offset) of the shard of ``rank``."""
        each = -(-curr_local_size // num_chunks)
        start = min(rank * each, curr_local_size)
        return min(start + each, curr_local_size) - start, start

    def _split_tensor(
        self, tensor, num_chunks: int, *, with_padding: bool = True, contiguous: bool = True
    ) -> tuple:
        """The shards of all ranks, and how much each is padded; with_padding pads them to the size of the first one."""
        sizes = [
            self.local_shard_size_and_offset(tensor.shape[self.dim], num_chunks, rank)[0]
            for rank in range(num_chunks)
        ]
        shards, pads = list(tensor.split(sizes, self.dim)), []
        if with_padding:
            pads = [sizes[0] - size for size in sizes]
            after = 2 * (
                tensor.ndim - 1 - self.dim % tensor.ndim
            )  # pad() counts dimensions from the last one
            shards = [
                functional.pad(shard, (0,) * after + (0, pad)) if pad else shard
                for shard, pad in zip(shards, pads, strict=True)
            ]
        return [shard.contiguous() for shard in shards] if contiguous else shards, pads


@dataclass(frozen=True)
class Replicate(Placement):
    """Replicated on every process."""

    def __repr__(self):
        return "Replicate()"

    def __str__(self):
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Every process has a partial value, and ``reduce_op`` (sum, avg, max, min, product) combines them."""

    reduce_op: str = "sum"

    def __repr__(self):
        return f"Partial({self.reduce_op})"

    def __str__(self):
        return f"P({self.reduce_op})"


@dataclass(frozen=True, repr=False)
class _StridedShard(Shard):
    """Sharded along a dimension that later mesh dimensions have already sharded into ``split_factor`` parts."""

    split_factor: int = 1

    def __init__(self, dim: int, *, split_factor: int = 1):
        object.__setattr__(self, "dim", dim)
        object.__setattr__(self, "split_factor", split_factor)

    def __repr__(self):
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self):
        return f"_S({self.dim}, {self.split_factor})"
