"""Process groups, and the table of existing groups."""

from datetime import timedelta

from .._errors import unsupported
from ..tensor import device
from .reduce_op import ReduceOp
from .store import Store
from .work import Work, together

default_pg_timeout = timedelta(minutes=30)
default_pg_nccl_timeout = timedelta(minutes=10)


def check_length(values, size: int, what: str, kind: str = "tensor") -> None:
    """Raise ValueError unless there is one value for each process."""
    if len(values) != size:
        raise ValueError(
            f"{what} must hold one {kind} for each of the {size} processes, but got {len(values)}"
        )


class Backend(str):
    """The name of a backend in lower case: Backend('NCCL') == 'nccl'."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, HCCL, FAKE = (
        "undefined",
        "gloo",
        "nccl",
        "ucc",
        "mpi",
        "xccl",
        "hccl",
        "fake",
    )
    backend_list = [UNDEFINED, GLOO, NCCL, XCCL, UCC, MPI, HCCL]
    default_device_backend_map = {"cpu": GLOO, "cuda": NCCL, "npu": HCCL}
    backend_capability = {
        GLOO: ["cpu", "cuda", "npu"],
        NCCL: ["cuda", "npu"],
        HCCL: ["npu", "cuda"],
        MPI: ["cpu", "cuda", "npu"],
    }

    def __new__(cls, name: str):
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, got: {name!r}")
        return str.__new__(cls, name.lower())

    @classmethod
    def register_backend(cls, name, func, extended_api=False, devices=None, _backend_type=None) -> None:
        """Not supported. A Python backend is registered with `msadapter.distributed.backend.register` instead."""
        raise unsupported("torch.distributed.Backend.register_backend")


class _Options:
    """The options of a backend, which are stored in the group."""

    def __init__(self, backend: str = "gloo", timeout=default_pg_timeout):
        self.backend = backend
        self._timeout = timeout
        self.is_high_priority_stream = False
        self.global_ranks_in_group = []
        self.group_name = ""
        self.config = _Config()


class _Config:
    """Tuning values of NCCL that programs set: min_ctas, max_ctas, cga_cluster_size, net_name ..."""


class _NcclOptions(_Options):
    def __init__(self, is_high_priority_stream: bool = False):
        super().__init__("nccl", default_pg_nccl_timeout)
        self.is_high_priority_stream = is_high_priority_stream


class ProcessGroup:
    """A group of the job's processes with the global ranks `ranks`. Its backend transfers the data."""

    class BackendType:
        UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, CUSTOM = range(7)

    Options = _Options

    def __init__(
        self, rank: int, ranks, backend_name: str, backend, name: str, desc: str, store: Store, timeout
    ):
        self._rank = rank
        self._ranks = list(ranks)
        self._backend_name = backend_name
        self._backend = backend
        self._name = backend.name = name
        self.group_desc = desc
        self.store = store
        self.timeout = timeout
        self.bound_device_id = None

    def rank(self) -> int:
        """Rank of this process inside the group."""
        return self._rank

    def size(self) -> int:
        """Number of processes."""
        return len(self._ranks)

    def name(self) -> str:
        """Name of the backend."""
        return self._backend_name

    @property
    def group_name(self) -> str:
        return self._name

    @property
    def _device_types(self):
        return [device("cpu"), device("cuda")]

    def _get_backend_name(self) -> str:
        return self._backend_name

    def _get_backend(self, device):
        return self

    def get_hccl_comm_name(self, rank: int, init_comm: bool = True) -> str:
        """The communicator's name for torch_npu's operators that are fused with communication. `rank` is global."""
        if rank not in self._ranks:
            raise RuntimeError(f"rank {rank} is not in the group {self._name!r} of {self._ranks}")
        return self._name

    def __repr__(self):
        return f"<ProcessGroup {self._name!r} of {self.size()}, {self._backend_name}>"

    # the methods of c10d's ProcessGroup, which take lists of tensors
    def allreduce(self, tensors, opts=None) -> Work:
        tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        op = getattr(opts, "reduceOp", opts)
        op = ReduceOp.SUM if op is None else op
        return together([self._backend.allreduce(t, op) for t in tensors])

    def broadcast(self, tensors, opts=None, root: int = 0) -> Work:
        tensors = tensors if isinstance(tensors, (list, tuple)) else [tensors]
        return together([self._backend.broadcast(t, getattr(opts, "rootRank", root)) for t in tensors])

    def allgather(self, output_lists, inputs, opts=None) -> Work:
        for outputs in output_lists:
            check_length(outputs, self.size(), "ProcessGroup.allgather: a list of outputs")
        return together([self._backend.allgather(o, i) for o, i in zip(output_lists, inputs, strict=True)])

    def _allgather_base(self, output, tensor, opts=None) -> Work:
        return together([self._backend.allgather_into(output, tensor)])

    def _reduce_scatter_base(self, output, tensor, opts=None) -> Work:
        op = getattr(opts, "reduceOp", None)
        return together(
            [self._backend.reduce_scatter_into(output, tensor, ReduceOp.SUM if op is None else op)]
        )

    def barrier(self, opts=None) -> Work:
        return together([self._backend.barrier()])

    def send(self, tensors, dst: int, tag: int = 0) -> Work:
        return together([self._backend.send(tensors[0], dst, tag)])

    def recv(self, tensors, src: int, tag: int = 0) -> Work:
        return together([self._backend.recv(tensors[0], src, tag)])


class ProcessGroupNCCL(ProcessGroup):
    """The attributes of NCCL's process group that programs use: its options."""

    Options = _NcclOptions


class ProcessGroupGloo(ProcessGroup):
    """The attributes of gloo's process group that programs use."""


class _MetaGroupMember(type):
    @property
    def WORLD(cls):
        return world.default_pg

    @WORLD.setter
    def WORLD(cls, group):
        world.default_pg = group


class GroupMember(metaclass=_MetaGroupMember):
    """The constants WORLD, the group of the whole job, and NON_GROUP_MEMBER."""

    NON_GROUP_MEMBER = -100


class group(metaclass=_MetaGroupMember):
    """torch.distributed.group.WORLD."""


class _World:
    """The table of groups."""

    def __init__(self):
        self.starts = 0
        self.clear()

    def clear(self):
        self.default_pg = None
        self.pg_map = {}
        self.pg_names = {}
        self.pg_group_ranks = {}
        self.pg_backend_config = {}
        self.pg_to_tag, self.tags_to_pg = {}, {}
        self.group_count = 0
        self.coalescing = {}

    @property
    def pg_coalesce_state(self):
        return self.coalescing

    def add(self, pg: ProcessGroup):
        self.pg_map[pg] = (pg._backend_name, pg.store)
        self.pg_names[pg] = pg.group_name
        self.pg_group_ranks[pg] = {rank: i for i, rank in enumerate(pg._ranks)}
        self.pg_backend_config[pg] = pg._backend_name
        self.pg_to_tag[pg] = tag = f"ptd:{pg.group_name}"
        for name in ("", tag):
            self.tags_to_pg.setdefault(name, []).append(pg)
        return pg

    def remove(self, pg: ProcessGroup):
        tag = self.pg_to_tag.get(pg)
        for table in (
            self.pg_map,
            self.pg_names,
            self.pg_group_ranks,
            self.pg_backend_config,
            self.pg_to_tag,
        ):
            table.pop(pg, None)
        for name in ("", tag):
            if pg in self.tags_to_pg.get(name, ()):
                self.tags_to_pg[name].remove(pg)


world = _World()


def default_group() -> ProcessGroup:
    """The group of all processes. Raises ValueError before init_process_group."""
    if world.default_pg is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call init_process_group."
        )
    return world.default_pg


def resolve(pg):
    """The group for a `group` argument (None means all processes); None if this process is not in the group."""
    if pg is GroupMember.NON_GROUP_MEMBER:
        return None
    return default_group() if pg is None else pg


def _resolve_process_group(group_name: str) -> ProcessGroup:
    """The group of a name. RuntimeError if there is none."""
    for pg, name in world.pg_names.items():
        if name == group_name:
            return pg
    raise RuntimeError(f"Could not resolve the process group registered under the name {group_name}")
