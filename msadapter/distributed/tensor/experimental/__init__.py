"""torch.distributed.tensor.experimental."""

from ...._errors import unsupported
from .._dispatch import implicit_replication
from ._local_map import local_map

__all__ = ["context_parallel", "implicit_replication", "local_map"]


def context_parallel(*args, **kwargs):
    """Attention over a sharded sequence. Not supported."""
    raise unsupported("torch.distributed.tensor.experimental.context_parallel")
