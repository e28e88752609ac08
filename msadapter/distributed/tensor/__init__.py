"""torch.distributed.tensor: tensors spread over a mesh of processes."""

from ..device_mesh import DeviceMesh, init_device_mesh
from . import _dispatch, _rules, _special, _view_rules, parallel
from ._api import distribute_module, distribute_tensor, empty, full, ones, rand, randn, zeros
from ._dtensor import DTensor, local_pass
from .placement_types import Partial, Placement, Replicate, Shard

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


def _join_autograd() -> None:
    from ... import autograd
    from ...autograd import function

    autograd.spread = DTensor, local_pass
    function.refused = DTensor


_join_autograd()
