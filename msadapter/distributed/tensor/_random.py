"""torch.distributed.tensor._random: the random numbers of DTensors.

They are drawn from the process's own generator, in the state of the mesh's first process (_special.py), on every kind of device. In
PyTorch, a mesh of CPUs draws each part by itself, so the numbers depend on the sharding there.
"""

from __future__ import annotations

from ... import random
from ..device_mesh import DeviceMesh

__all__ = ["is_rng_supported_mesh", "manual_seed"]


def is_rng_supported_mesh(device_mesh: DeviceMesh) -> bool:
    """Return True, because random numbers do not depend on the sharding, whatever the device."""
    return True


def manual_seed(seed: int, device_mesh: DeviceMesh) -> None:
    """Seed this process's generator. All processes of the mesh must call it with the same seed.

    Raises:
        RuntimeError: this process is not in the mesh.
    """
    if device_mesh.get_coordinate() is None:
        raise RuntimeError(
            "manual_seed requires the current rank to be a part of the device mesh otherwise DTensor RNG state on the rank will "
            "not be initialized and the behavior of DTensor random ops is undefined."
        )
    random.manual_seed(seed)
