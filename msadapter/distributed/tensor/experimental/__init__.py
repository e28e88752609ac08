"""torch.distributed.tensor.experimental."""

from .._dispatch import implicit_replication
from ._local_map import local_map

__all__ = ["context_parallel", "implicit_replication", "local_map"]


def context_parallel(*args, **kwargs):
    """Attention over a sharded sequence. Not supported."""
    raise NotImplementedError(
        "torch.distributed.tensor.experimental.context_parallel is not supported (docs/coverage.md)"
    )
