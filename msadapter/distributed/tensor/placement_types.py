"""How a tensor lies on one dimension of a mesh."""
from dataclasses import dataclass


class Placement:
    """Base of the placements."""

    def is_shard(self, dim=None) -> bool:
        """Whether it is cut (along `dim`)."""
        return isinstance(self, Shard) and dim in (None, getattr(self, "dim", None))

    def is_replicate(self) -> bool:
        """Whether every process has it whole."""
        return isinstance(self, Replicate)

    def is_partial(self) -> bool:
        """Whether it is yet to be reduced."""
        return isinstance(self, Partial)


@dataclass(frozen=True)
class Shard(Placement):
    """Cut along a dimension."""

    dim: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Whole on every process."""


@dataclass(frozen=True)
class Partial(Placement):
    """A summand on every process."""

    reduce_op: str = "sum"


@dataclass(frozen=True)
class _StridedShard(Shard):
    """Cut along a dimension that a later mesh dimension has cut before into ``split_factor`` parts."""

    split_factor: int = 1
