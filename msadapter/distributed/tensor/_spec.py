"""The specification of a DTensor, and the computation of the part that a process holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...tensor import Size
from ..device_mesh import DeviceMesh
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard


class TensorMeta(NamedTuple):
    """Shape, strides and dtype of the global tensor."""

    shape: tuple
    stride: tuple
    dtype: object


@dataclass(frozen=True)
class DTensorSpec:
    """A mesh, a placement for each of its dimensions, and the metadata of the global tensor."""

    mesh: DeviceMesh
    placements: tuple
    tensor_meta: TensorMeta | None = None

    def __hash__(self):
        known = self.__dict__.get("_hash")  # cached, because every operation needs it
        if known is None:
            known = hash((self.mesh, self.placements, self.tensor_meta))
            object.__setattr__(self, "_hash", known)
        return known

    @property
    def device_mesh(self) -> DeviceMesh:
        """The mesh."""
        return self.mesh

    @property
    def shape(self):
        """The shape of the global tensor."""
        return Size(self.tensor_meta.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions of the global tensor."""
        return len(self.tensor_meta.shape)

    @property
    def num_shards(self) -> int:
        """The number of shards of the tensor."""
        count = 1
        for mesh_dim, placement in enumerate(self.placements):
            count *= self.mesh.size(mesh_dim) if placement.is_shard() else 1
        return count

    def is_replicated(self) -> bool:
        """True if the tensor is replicated on every process."""
        return all(p.is_replicate() for p in self.placements)


def checked_placements(placements, mesh: DeviceMesh, ndim: int) -> tuple:
    """Normalises placements: one for each mesh dimension, with non-negative dimensions. Raises torch's errors."""
    if placements is None:
        return (Replicate(),) * mesh.ndim
    placements = tuple(placements)
    if len(placements) != mesh.ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(placements)}, and "
            f"device_mesh.ndim: {mesh.ndim}."
        )
    made = []
    for placement in placements:
        if not isinstance(placement, Placement):
            raise RuntimeError(f"Placement must be a Shard, Replicate or Partial, but got {placement!r}")
        if placement.is_shard():
            dim = placement.dim + ndim if placement.dim < 0 else placement.dim
            if not 0 <= dim < max(ndim, 1):
                raise RuntimeError(f"Sharding dim {placement.dim} greater than tensor ndim {ndim}")
            if dim != placement.dim:
                strided = isinstance(placement, _StridedShard)
                placement = _StridedShard(dim, split_factor=placement.split_factor) if strided else Shard(dim)
        made.append(placement)
    return tuple(made)


def cuts(placements, mesh) -> dict:
    """Tensor dimension -> the mesh dimensions that shard it, in the order of sharding.

    A strided shard is applied after the later mesh dimensions that its split factor counts.
    """
    order: dict = {}
    for mesh_dim, placement in enumerate(placements):
        if placement.is_shard():
            order.setdefault(placement.dim, []).append(mesh_dim)
    for dim, mesh_dims in order.items():
        order[dim] = _by_stride(mesh_dims, placements, mesh)
    return order


def _by_stride(mesh_dims, placements, mesh) -> list:
    made: list = []
    for mesh_dim in reversed(mesh_dims):
        before, place = getattr(placements[mesh_dim], "split_factor", 1), 0
        while before > 1:
            if place == len(made):
                raise RuntimeError(
                    f"the placements {placements} do not define how mesh dimension {mesh_dim} shards the tensor"
                )
            before //= mesh.size(made[place])
            place += 1
        made.insert(place, mesh_dim)
    return made


def part(size: int, count: int, place: int) -> tuple:
    """The (length, start) of the shard with index ``place`` of ``count`` shards."""
    return Shard.local_shard_size_and_offset(size, count, place)


def local_shape_and_offset(shape, mesh, placements) -> tuple:
    """The (shape, offset) of this process's part; ((0,), ()) if the process is not in the mesh."""
    here = mesh.get_coordinate()
    if here is None:
        return (0,), ()
    lengths, starts = list(shape), [0] * len(shape)
    for dim, mesh_dims in cuts(placements, mesh).items():
        for mesh_dim in mesh_dims:
            lengths[dim], start = part(lengths[dim], mesh.size(mesh_dim), here[mesh_dim])
            starts[dim] = shape[dim] if lengths[dim] == 0 else starts[dim] + start
    return tuple(lengths), tuple(starts)


def gradient_placements(placements) -> tuple:
    """The placements of the gradient: those of the tensor, with Replicate instead of Partial."""
    return tuple(Replicate() if isinstance(p, Partial) else p for p in placements)
