"""torch.distributed.elastic.multiprocessing."""

from . import errors, redirects, tail_log

__all__ = ["errors", "redirects", "tail_log"]
