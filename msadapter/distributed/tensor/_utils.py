"""Where the part of one rank lies in a spread tensor."""

from __future__ import annotations

from collections.abc import Sequence

from ._spec import checked_placements, local_shape_and_offset
from .placement_types import Placement


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh, placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(shape, offset) of this rank's part of a tensor of ``global_shape``; empty when the rank is not in the mesh.

    A dim of n elements over k ranks is cut into parts of ceil(n / k), the last ones shorter or empty; several mesh dims cut
    the same tensor dim one after the other."""
    return local_shape_and_offset(global_shape, mesh, checked_placements(placements, mesh, len(global_shape)))


def compute_local_shape(global_shape, mesh, placements) -> tuple[int, ...]:
    """The shape alone."""
    return compute_local_shape_and_global_offset(global_shape, mesh, placements)[0]


def compute_global_tensor_info(tensor, mesh, placements) -> tuple[list, list]:
    """(shape, strides) of the whole tensor when every process holds a part as large as ``tensor``."""
    shape, stride = list(tensor.shape), list(tensor.stride())
    for mesh_dim, placement in enumerate(placements):
        if not placement.is_shard():
            continue
        dim, count = placement.dim % max(len(shape), 1), mesh.size(mesh_dim)
        shape[dim] *= count
        for other in range(len(stride)):
            if other != dim and stride[other] >= stride[dim]:
                stride[other] *= count
    return shape, stride
