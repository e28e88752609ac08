"""torch._C._distributed_c10d: classes of torch.distributed, under the name of PyTorch's native module."""

from __future__ import annotations

from .. import distributed as _distributed
from .._errors import unsupported
from ..distributed import distributed_c10d as _c10d


class _SymmetricMemory:
    """Memory that all ranks of a group can address. Not supported, because MPI and HCCL have none."""

    def __init__(self, *args, **kwargs):
        raise _unsupported()

    def __init_subclass__(cls, **kwargs):
        raise _unsupported()

    @staticmethod
    def empty_strided_p2p(*args, **kwargs):
        """Not supported: raises NotImplementedError."""
        raise _unsupported()

    @staticmethod
    def rendezvous(*args, **kwargs):
        """Not supported: raises NotImplementedError."""
        raise _unsupported()

    @staticmethod
    def has_multicast_support(*args, **kwargs) -> bool:
        """Return False."""
        return False


def _unsupported() -> NotImplementedError:
    return unsupported(
        "torch._C._distributed_c10d._SymmetricMemory", "memory that several ranks address is not supported"
    )


def __getattr__(name: str):
    for module in (_c10d, _distributed):
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module 'torch._C._distributed_c10d' has no attribute {name!r}")
