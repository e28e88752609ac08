"""The description of a DTensor, and which part of it a process holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ...tensor import Size
from ..device_mesh import DeviceMesh
from .placement_types import Partial, Placement, Replicate, Shard, _StridedShard


class TensorMeta(NamedTuple):
    """Shape, strides and dtype of the whole tensor."""

    shape: tuple
    stride: tuple
    dtype: object


@dataclass(frozen=True)
class DTensorSpec:
    """A mesh, a placement for each of its dims, and the whole tensor's description."""

    mesh: DeviceMesh
    placements: tuple
    tensor_meta: TensorMeta | None = None

    def __hash__(self):
        known = self.__dict__.get("_hash")  # asked for at every operation
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
        """Shape of the whole tensor."""
        return Size(self.tensor_meta.shape)

    @property
    def ndim(self) -> int:
        """Number of dims of the whole tensor."""
        return len(self.tensor_meta.shape)

    @property
    def num_shards(self) -> int:
        """Into how many parts the tensor is cut."""
        count = 1
        for mesh_dim, placement in enumerate(self.placements):
            count *= self.mesh.size(mesh_dim) if placement.is_shard() else 1
        return count

    def is_replicated(self) -> bool:
        """Whether every process has it whole."""
        return all(p.is_replicate() for p in self.placements)


def checked_placements(placements, mesh: DeviceMesh, ndim: int) -> tuple:
    """One placement for each mesh dim, with dims counted from the front; torch's errors for others."""
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
    """Tensor dim -> mesh dims that cut it, in the order in which they do.

    A strided shard cuts after the later mesh dims whose parts it names."""
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
                raise RuntimeError(f"{placements} do not say how mesh dimension {mesh_dim} cuts the tensor")
            before //= mesh.size(made[place])
            place += 1
        made.insert(place, mesh_dim)
    return made


def part(size: int, count: int, place: int) -> tuple:
    """(length, start) of one of ``count`` parts."""
    return Shard.local_shard_size_and_offset(size, count, place)


def local_shape_and_offset(shape, mesh, placements) -> tuple:
    """(shape, offset) of this process's part; (0,) and () outside the mesh."""
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
    """Where gradients lie: as the tensor does; what is partial has its gradient whole."""
    return tuple(Replicate() if isinstance(p, Partial) else p for p in placements)
