"""torch._C._distributed_c10d: the classes of torch.distributed under the name of PyTorch's native module."""

from __future__ import annotations

from .. import distributed as _distributed
from ..distributed import distributed_c10d as _c10d


def __getattr__(name: str):
    for module in (_c10d, _distributed):
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module 'torch._C._distributed_c10d' has no attribute {name!r}")
