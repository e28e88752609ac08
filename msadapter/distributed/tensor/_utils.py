"""Computes the shape and the offset of a rank's part of a distributed tensor."""

from __future__ import annotations

from collections.abc import Sequence

from ._spec import checked_placements, local_shape_and_offset
from .placement_types import Placement


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh, placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The (shape, offset) of this rank's part of a tensor of ``global_shape``; empty if the rank is not in the mesh.

    A dimension of n elements over k ranks is divided into shards of ceil(n / k) elements; the last ones are shorter or empty.
    If several mesh dimensions shard the same tensor dimension, they do so one after the other.
    """
    return local_shape_and_offset(global_shape, mesh, checked_placements(placements, mesh, len(global_shape)))


def compute_local_shape(global_shape, mesh, placements) -> tuple[int, ...]:
    """The shape of `compute_local_shape_and_global_offset`."""
    return compute_local_shape_and_global_offset(global_shape, mesh, placements)[0]


def compute_global_tensor_info(tensor, mesh, placements) -> tuple[list, list]:
    """The (shape, strides) of the global tensor if every process has a local tensor of the size of ``tensor``."""
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
