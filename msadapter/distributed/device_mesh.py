"""DeviceMesh: the job's processes as an array with named dimensions."""

import math
import threading

from ..tensor import _tensor as factory
from . import setup
from .process_group import GroupMember, default_group, world

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
        self._root, self._flatten_mapping = None, {}

    @property
    def mesh(self):
        return factory.tensor(self._ranks)

    @property
    def ndim(self) -> int:
        return len(self._shape)

    @property
    def shape(self) -> tuple:
        return self._shape

    def size(self, mesh_dim=None) -> int:
        """The number of processes in total or along a dimension."""
        return math.prod(self._shape) if mesh_dim is None else self._shape[mesh_dim]

    def numel(self) -> int:
        """Number of processes."""
        return math.prod(self._shape)

    def __enter__(self):
        _mesh_resources.mesh_stack.append(self)
        return self

    def __exit__(self, *error):
        _mesh_resources.mesh_stack.pop()

    def _get_root_mesh(self):
        """The mesh of which this one is a slice, or this mesh itself if it is not a slice."""
        return self._root or self

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
        """This process's group along a dimension, which is given by index or name."""
        return self._groups[self._dim(mesh_dim)]

    def get_all_groups(self) -> list:
        """This process's groups along all dimensions."""
        return list(self._groups)

    def get_rank(self) -> int:
        """Rank of this process in the job."""
        return setup.get_rank()

    def get_local_rank(self, mesh_dim=None) -> int:
        """This process's coordinate along a dimension."""
        return self._place[self._dim(mesh_dim)]

    def get_coordinate(self):
        """This process's coordinates along all dimensions; None if it is not in the mesh."""
        return list(self._place) if self._place is not None else None

    def __getitem__(self, mesh_dim_names):
        names = (mesh_dim_names,) if isinstance(mesh_dim_names, str) else tuple(mesh_dim_names)
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        flattened = self._get_root_mesh()._flatten_mapping
        if len(names) == 1 and names[0] not in self.mesh_dim_names and names[0] in flattened:
            return flattened[names[0]]
        if names == self.mesh_dim_names:
            return self
        dims = [self._dim(name) for name in names]
        if dims != sorted(dims):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Found mesh dim indices to slice: {dims}. Mesh dim indices should be in "
                "ascending order."
            )
        place = self._place or (0,) * self.ndim
        part = self._made(
            _slice(self._ranks, place, dims), names, [self._groups[d] for d in dims] if self._groups else []
        )
        part._root = self._get_root_mesh()
        return part

    def _made(self, ranks, names, groups):
        """A mesh of some of this mesh's processes that uses existing groups."""
        made = DeviceMesh.__new__(DeviceMesh)
        made.device_type, made.mesh_dim_names, made._ranks = self.device_type, names, ranks
        made._shape, made._place = _shape_of(ranks), _place(ranks, setup.get_rank())
        made._groups, made._root, made._flatten_mapping = groups, None, {}
        return made

    def _flatten(self, mesh_dim_name=None, backend_override=None):
        """A one-dimensional mesh of this mesh's processes. The root mesh can be sliced by its name."""
        root = self._get_root_mesh()
        name = mesh_dim_name or "_".join(self.mesh_dim_names or ("dim",))
        if self.ndim == 1 and mesh_dim_name in (None, *(self.mesh_dim_names or ())):
            return self
        if name in root._flatten_mapping:
            return root._flatten_mapping[name]
        own = None
        for line in _slices_like(root, self):
            whole = sorted(line) == list(range(setup.get_world_size()))
            group = default_group() if whole else setup.new_group(line)
            own = (line, group) if setup.get_rank() in line else own
        made = self._made(own[0] if own else [], (name,), [own[1]] if own else [])
        made._root = root
        root._flatten_mapping[name] = made
        return made

    def _unflatten(self, dim, mesh_sizes, mesh_dim_names, backend_override=None) -> "DeviceMesh":
        """A mesh of the same processes in which several dimensions take the place of one.

        dim: the dimension, by index or name. mesh_sizes, mesh_dim_names: the new dimensions, whose sizes multiply to its size. All
        processes must call it, because the new dimensions get groups. The new mesh is sliced by its own names.
        backend_override: not used, because processes have one kind of communication here.
        """
        if isinstance(dim, str) and dim not in (self.mesh_dim_names or ()):
            raise ValueError(f"dim {dim} specified in `_unflatten` is not in {self.mesh_dim_names}")
        dim = self.mesh_dim_names.index(dim) if isinstance(dim, str) else dim
        if dim >= self.ndim:
            raise ValueError(f"dim {dim} specified in `_unflatten` is out of range {self.ndim}")
        if len(mesh_sizes) != len(mesh_dim_names):
            raise RuntimeError("mesh_dim_names must have same length as mesh_sizes in _unflatten!")
        if math.prod(mesh_sizes) != self._shape[dim]:
            raise ValueError(
                f"the sizes {tuple(mesh_sizes)} do not multiply to {self._shape[dim]}, the size of dim {dim} of {self}"
            )
        names = self.mesh_dim_names or tuple(f"dim_{i}" for i in range(self.ndim))
        return DeviceMesh(
            self.device_type,
            _split_dim(self._ranks, dim, tuple(mesh_sizes)),
            mesh_dim_names=(*names[:dim], *mesh_dim_names, *names[dim + 1 :]),
        )

    def __getstate__(self):
        return {
            k: v
            for k, v in self.__dict__.items()
            if k not in ("_groups", "_root", "_flatten_mapping", "_hash")
        }

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._root, self._flatten_mapping = None, {}
        self._groups = _found_groups(self._ranks, self._shape)

    def __deepcopy__(self, memo):
        return self

    @staticmethod
    def from_group(group, device_type, mesh=None, *, mesh_dim_names=None):
        """The mesh of an existing group, or of several groups, one for each dimension of ``mesh``."""
        several = isinstance(group, (list, tuple))
        if several and mesh is None:
            raise ValueError("Must pass mesh if passing multiple ProcessGroups")
        ranks = mesh if mesh is not None else setup.get_process_group_ranks(group)
        made = DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names, _init_backend=False)
        made._groups = list(group) if several else [group]
        if len(made._groups) != made.ndim:
            raise ValueError(
                f"Expects mesh with ndim equal to number of ProcessGroups but got mesh {made._ranks}"
            )
        return made

    def __eq__(self, other):
        return self is other or (
            isinstance(other, DeviceMesh)
            and self.device_type == other.device_type
            and self._ranks == other._ranks
            and self.mesh_dim_names == other.mesh_dim_names
        )

    def __hash__(self):
        if "_hash" not in self.__dict__:
            self._hash = hash((self.device_type, str(self._ranks), self.mesh_dim_names))
        return self._hash

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


def _nested(ranks: list, shape) -> list:
    """The elements of a list as nested lists of a shape."""
    for length in reversed(shape[1:]):
        ranks = [ranks[i : i + length] for i in range(0, len(ranks), length)]
    return ranks


def _split_dim(ranks, dim: int, sizes: tuple) -> list:
    """Nested lists with several dimensions in the place of one."""
    return _nested(ranks, sizes) if dim == 0 else [_split_dim(part, dim - 1, sizes) for part in ranks]


def _at(ranks, place):
    for i in place:
        ranks = ranks[i]
    return ranks


def _places(shape):
    if not shape:
        return [()]
    return [(i, *rest) for i in range(shape[0]) for rest in _places(shape[1:])]


def _lines(ranks, shape, dim):
    """The lists of ranks along one dimension, one list for each coordinate in the other dimensions."""
    others = [p for p in _places(shape) if p[dim] == 0]
    return [[_at(ranks, (*p[:dim], i, *p[dim + 1 :])) for i in range(shape[dim])] for p in others]


def _slices_like(root, part) -> list:
    """The ranks of every slice of ``root`` along the dimensions of ``part``."""
    dims = (
        [root.mesh_dim_names.index(n) for n in part.mesh_dim_names] if root is not part else range(root.ndim)
    )
    places, made = _places(root.shape), {}
    for place in places:
        rest = tuple(p for d, p in enumerate(place) if d not in dims)
        made.setdefault(rest, []).append(_at(root._ranks, place))
    return list(made.values())


def _found_groups(ranks, shape) -> list:
    """This process's existing groups along each dimension, for a mesh that was loaded from a file."""
    if not setup.is_initialized():
        return []
    own = setup.get_rank()
    found = []
    for dim in range(len(shape)):
        line = next((line for line in _lines(ranks, shape, dim) if own in line), None)
        found.append(next((pg for pg in world.pg_map if line is not None and pg._ranks == line), None))
    return found


class _MeshResources:
    """The meshes of `with mesh:` blocks, and the older API for slices."""

    def __init__(self):
        self._local = threading.local()

    @property
    def mesh_stack(self) -> list:
        if not hasattr(self._local, "stack"):
            self._local.stack = []
        return self._local.stack

    def get_current_mesh(self) -> DeviceMesh:
        """The mesh of the innermost block."""
        if not self.mesh_stack:
            raise RuntimeError("No device mesh is currently active!")
        return self.mesh_stack[-1]

    def get_root_mesh(self, device_mesh) -> DeviceMesh:
        """The mesh of which this one is a slice."""
        return device_mesh._get_root_mesh()

    def get_root_mesh_dim(self, device_mesh):
        """The index of a slice's dimension in its root mesh; None if the mesh is not a slice."""
        root = device_mesh._get_root_mesh()
        if root is device_mesh or not device_mesh.mesh_dim_names:
            return None
        return root.mesh_dim_names.index(device_mesh.mesh_dim_names[0])

    def get_mesh_dim_by_name(self, device_mesh, mesh_dim_name: str) -> int:
        """The index of a dimension."""
        return device_mesh._dim(mesh_dim_name)

    def _get_all_submeshes(self, device_mesh, mesh_dim_name: str) -> list:
        """The slices along a dimension, of all processes."""
        dim = device_mesh._dim(mesh_dim_name)
        lines = _lines(device_mesh._ranks, device_mesh.shape, dim)
        own = device_mesh[mesh_dim_name]
        return [
            own if line == own._ranks else device_mesh._made(line, (mesh_dim_name,), []) for line in lines
        ]


_mesh_resources = _MeshResources()


def _slice(ranks, place, dims, depth=0):
    if depth == len(place):
        return ranks
    if depth in dims:
        return [_slice(part, place, dims, depth + 1) for part in ranks]
    return _slice(ranks[place[depth]], place, dims, depth + 1)


def init_device_mesh(
    device_type: str, mesh_shape, *, mesh_dim_names=None, backend_override=None
) -> DeviceMesh:
    """Creates a mesh of the given shape from all processes in the order of their ranks."""
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
    ranks = _nested(list(range(count)), mesh_shape)
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
