"""The old name of torch.distributed.tensor, and of its modules."""

from ..tensor import *  # noqa: F403
from ..tensor._spec import DTensorSpec
from ..tensor._utils import compute_local_shape_and_global_offset
from . import _utils, api, device_mesh, experimental, placement_types

__all__ = [
    "DTensorSpec",
    "_utils",
    "api",
    "compute_local_shape_and_global_offset",
    "device_mesh",
    "experimental",
    "placement_types",
]
