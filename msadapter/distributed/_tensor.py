"""The old name of torch.distributed.tensor."""

from .tensor import *  # noqa: F403
from .tensor import placement_types
from .tensor._spec import DTensorSpec
from .tensor._utils import compute_local_shape_and_global_offset

__all__ = ["DTensorSpec", "compute_local_shape_and_global_offset", "placement_types"]
