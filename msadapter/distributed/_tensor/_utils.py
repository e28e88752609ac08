"""The old name of torch.distributed.tensor._utils."""

from ..tensor._utils import compute_local_shape_and_global_offset

__all__ = ["compute_local_shape_and_global_offset"]
