"""torch.distributed.nn: collectives with gradients, and modules on other workers."""

from .api.remote_module import RemoteModule
from .functional import all_gather, all_reduce, broadcast

__all__ = ["RemoteModule", "all_gather", "all_reduce", "broadcast"]
