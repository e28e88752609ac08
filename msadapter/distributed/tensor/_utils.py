"""Where the part of one rank lies in a spread tensor."""

from __future__ import annotations

from collections.abc import Sequence

from .placement_types import Placement, Shard


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh, placements: Sequence[Placement]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(shape, offset) of this rank's part of a tensor of ``global_shape``; empty when the rank is not in the mesh.

    A dim of n elements over k ranks is cut into parts of ceil(n / k), the last ones shorter or empty; several mesh dims cut
    the same tensor dim one after the other."""
    shape, offset = list(global_shape), [0] * len(global_shape)
    here = mesh.get_coordinate()
    if here is None:
        return (0,), ()
    for mesh_dim, placement in enumerate(placements):
        if not isinstance(placement, Shard):
            continue
        if not -len(shape) <= placement.dim < len(shape):
            raise RuntimeError(f"Sharding dim {placement.dim} greater than tensor ndim {len(shape)}")
        dim = placement.dim % len(shape)
        size, parts = shape[dim], mesh.size(mesh_dim)
        each = -(-size // parts)
        start = min(here[mesh_dim] * each, size)
        shape[dim] = min(start + each, size) - start
        offset[dim] = global_shape[dim] if shape[dim] == 0 else offset[dim] + start
    return tuple(shape), tuple(offset)
