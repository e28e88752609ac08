"""torch.nn.parallel.distributed: DistributedDataParallel by its second name."""

from ...distributed import DistributedDataParallel

__all__ = ["DistributedDataParallel"]
