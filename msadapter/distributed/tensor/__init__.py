"""torch.distributed.tensor: placements and the class DTensor for isinstance checks. DTensors cannot be made
here."""
from ..device_mesh import DeviceMesh, init_device_mesh
from .placement_types import Partial, Placement, Replicate, Shard

__all__ = ["DTensor", "DeviceMesh", "Partial", "Placement", "Replicate", "Shard", "distribute_module",
           "distribute_tensor", "init_device_mesh"]


class DTensor:
    """A tensor spread over a mesh."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("torch.distributed.tensor.DTensor is not supported (docs/coverage.md)")

    @classmethod
    def from_local(cls, *args, **kwargs):
        """A DTensor from the local parts."""
        return cls(*args, **kwargs)


def distribute_tensor(tensor, device_mesh=None, placements=None, *, src_data_rank=0):
    """A DTensor from a whole tensor."""
    return DTensor()


def distribute_module(module, *args, **kwargs):
    """A module whose parameters are DTensors."""
    raise NotImplementedError("torch.distributed.tensor.distribute_module is not supported "
                              "(docs/coverage.md)")
