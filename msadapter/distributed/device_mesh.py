"""DeviceMesh: the job's processes as an array with named dimensions."""

import math

from . import setup
from .process_group import GroupMember, default_group

__all__ = ["DeviceMesh", "init_device_mesh"]


class DeviceMesh:
    """An n-dimensional array of ranks, with a group along each dimension.

    mesh: nested lists (or a tensor) of ranks; mesh_dim_names: names of the dimensions.
    """

    def __init__(self, device_type: str, mesh, *, mesh_dim_names=None, _init_backend: bool = True):
        self.device_type = device_type
        self._ranks = mesh.tolist() if hasattr(mesh, "tolist") else mesh
        self._shape = _shape_of(self._ranks)
        self.mesh_dim_names = tuple(mesh_dim_names) if mesh_dim_names else None
        if not setup.is_initialized():
            setup.init_process_group()
        self._place = _place(self._ranks, setup.get_rank())
        self._groups = self._make_groups() if _init_backend else []

    @property
    def mesh(self):
        from ..tensor import _tensor as factory

        return factory.tensor(self._ranks)

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def shape(self) -> tuple:
        return self._shape

    def size(self, mesh_dim=None) -> int:
        """Number of processes, in all or along a dimension."""
        return math.prod(self._shape) if mesh_dim is None else self._shape[mesh_dim]

    def _make_groups(self):
        groups = []
        for dim in range(self.ndim):
            own = None
            for line in _lines(self._ranks, self._shape, dim):
                whole = sorted(line) == list(range(setup.get_world_size()))
                made = default_group() if whole else setup.new_group(line)
                if made is not GroupMember.NON_GROUP_MEMBER and setup.get_rank() in line:
                    own = made
            groups.append(own)
        return groups

    def _dim(self, mesh_dim) -> int:
        if isinstance(mesh_dim, str):
            if not self.mesh_dim_names or mesh_dim not in self.mesh_dim_names:
                raise KeyError(
                    f"Invalid mesh_dim_names {mesh_dim!r} specified. Valid mesh_dim_names are "
                    f"{self.mesh_dim_names}."
                )
            return self.mesh_dim_names.index(mesh_dim)
        if mesh_dim is None:
            if self.ndim > 1:
                raise RuntimeError(
                    f"Found the DeviceMesh have {self.ndim} dimensions. Optional kwarg "
                    "`mesh_dim` "
                    "needs to be specified when device_mesh.ndim > 1."
                )
            return 0
        return mesh_dim

    def get_group(self, mesh_dim=None):
        """The own group along a dimension (index or name)."""
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list:
        """The own groups along all dimensions."""
        return list(self._groups)

    def get_rank(self) -> int:
        """Rank of this process in the job."""
        return setup.get_rank()

    def get_local_rank(self, mesh_dim=None) -> int:
        """Place of this process along a dimension."""
        return self._place[self._dim(mesh_dim)]

    def get_coordinate(self):
        """Place of this process along all dimensions; None if it is not in the mesh."""
        return list(self._place) if self._place is not None else None

    def __getitem__(self, mesh_dim_names):
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        dims = [self._dim(name) for name in names]
        part = DeviceMesh.__new__(DeviceMesh)
        part.device_type, part.mesh_dim_names = self.device_type, names
        part._ranks = _slice(self._ranks, self._place, dims)
        part._shape = tuple(self._shape[d] for d in dims)
        part._place = tuple(self._place[d] for d in dims)
        part._groups = [self._groups[d] for d in dims]
        return part

    @staticmethod
    def from_group(group, device_type, mesh=None, *, mesh_dim_names=None):
        """The mesh of one existing group."""
        made = DeviceMesh(
            device_type,
            setup.get_process_group_ranks(group),
            mesh_dim_names=mesh_dim_names,
            _init_backend=False,
        )
        made._groups = [group]
        return made

    def __eq__(self, other):
        return (
            isinstance(other, DeviceMesh)
            and self.device_type == other.device_type
            and self._ranks == other._ranks
            and self.mesh_dim_names == other.mesh_dim_names
        )

    def __hash__(self):
        return hash((self.device_type, str(self._ranks), self.mesh_dim_names))

    def __repr__(self):
        names = f"mesh_dim_names={self.mesh_dim_names}"
        return f"DeviceMesh({self._ranks}, device_type={self.device_type!r}, {names})"


def _shape_of(ranks) -> tuple:
    return (len(ranks), *_shape_of(ranks[0])) if isinstance(ranks, (list, tuple)) else ()


def _place(ranks, rank):
    if not isinstance(ranks, (list, tuple)):
        return () if ranks == rank else None
    for i, part in enumerate(ranks):
        inner = _place(part, rank)
        if inner is not None:
            return (i, *inner)
    return None


def _at(ranks, place):
    for i in place:
        ranks = ranks[i]
    return ranks


def _places(shape):
    if not shape:
        return [()]
    return [(i, *rest) for i in range(shape[0]) for rest in _places(shape[1:])]


def _lines(ranks, shape, dim):
    """Lists of ranks along one dimension, one for each place in the others."""
    others = [p for p in _places(shape) if p[dim] == 0]
    return [[_at(ranks, (*p[:dim], i, *p[dim + 1 :])) for i in range(shape[dim])] for p in others]


def _slice(ranks, place, dims, depth=0):
    if depth == len(place):
        return ranks
    if depth in dims:
        return [_slice(part, place, dims, depth + 1) for part in ranks]
    return _slice(ranks[place[depth]], place, dims, depth + 1)


def init_device_mesh(
    device_type: str, mesh_shape, *, mesh_dim_names=None, backend_override=None
) -> DeviceMesh:
    """The mesh of all processes in the given shape, ranks in order."""
    if mesh_dim_names is not None:
        if len(set(mesh_dim_names)) != len(mesh_dim_names):
            raise RuntimeError("Each mesh_dim_name must be unique.")
        if len(mesh_shape) != len(mesh_dim_names):
            raise RuntimeError("mesh_shape and mesh_dim_names should have same length!")
    if not setup.is_initialized():
        setup.init_process_group()
    count = math.prod(mesh_shape)
    if count > setup.get_world_size():
        raise RuntimeError(
            f"Mesh should not be bigger than default world size {setup.get_world_size()}, "
            f"but found {count} ranks!"
        )
    ranks = list(range(count))
    for length in reversed(mesh_shape[1:]):
        ranks = [ranks[i : i + length] for i in range(0, len(ranks), length)]
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
