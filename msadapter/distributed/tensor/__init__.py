"""torch.distributed.tensor: tensors that are sharded over a mesh of processes."""

import importlib

from ..._host import extensions
from ...serialization import add_safe_globals
from ..device_mesh import DeviceMesh, init_device_mesh
from . import _dispatch, _rules, _special, _view_rules, parallel
from ._api import distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros
from ._dtensor import DTensor, _rebuild, local_pass
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "empty",
    "full",
    "init_device_mesh",
    "ones",
    "parallel",
    "rand",
    "randn",
    "zeros",
]


extensions.spread_backward.provide((DTensor, local_pass))
extensions.refused_by_function.provide(DTensor)
add_safe_globals([_rebuild, DeviceMesh, Partial, Replicate, Shard, _StridedShard])


def __getattr__(name: str):
    if name in ("debug", "experimental"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'torch.distributed.tensor' has no attribute {name!r}")
