"""The old name of torch.distributed.tensor.placement_types."""

from ..tensor._spec import DTensorSpec
from ..tensor.placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensorSpec", "Partial", "Placement", "Replicate", "Shard"]
