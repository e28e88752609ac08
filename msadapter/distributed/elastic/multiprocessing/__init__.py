"""torch.distributed.elastic.multiprocessing."""

from . import errors

__all__ = ["errors"]
