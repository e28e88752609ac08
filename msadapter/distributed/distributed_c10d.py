"""torch.distributed.distributed_c10d: the functions of c10d under the module name that libraries import."""

import os
from datetime import timedelta

from ..tensor import device
from .collectives import (
    _all_gather_base,
    _coalescing_manager,
    _CoalescingManager,
    _reduce_scatter_base,
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_gather_single,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    monitored_barrier,
    record_comm,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
    scatter,
)
from .debug import DebugLevel, get_debug_level
from .errors import DistBackendError, DistError, DistNetworkError, DistStoreError, QueueEmptyError
from .objects import (
    _object_to_tensor,
    _tensor_to_object,
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from .point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from .process_group import (
    Backend,
    GroupMember,
    ProcessGroup,
    ProcessGroupGloo,
    ProcessGroupNCCL,
    _resolve_process_group,
    default_pg_nccl_timeout,
    default_pg_timeout,
    group,
)
from .process_group import default_group as _get_default_group
from .process_group import world as _world
from .reduce_op import ReduceOp, _make_nccl_premul_sum, reduce_op, supports_complex
from .setup import SHRINK_ABORT as SHRINK_ABORT
from .setup import SHRINK_DEFAULT as SHRINK_DEFAULT
from .setup import (
    destroy_process_group,
    get_backend,
    get_backend_config,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    is_xccl_available,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
    register_rendezvous_handler,
    rendezvous,
    shrink_group,
    split_group,
)
from .store import FileStore, HashStore, PrefixStore, Store
from .tcp_store import TCPStore
from .work import Work, _Work

__all__ = [
    "Backend",
    "DebugLevel",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "ProcessGroupGloo",
    "ProcessGroupNCCL",
    "QueueEmptyError",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "_CoalescingManager",
    "_Work",
    "_all_gather_base",
    "_coalescing_manager",
    "_get_default_group",
    "_get_default_store",
    "_get_pg_default_device",
    "_get_process_group_name",
    "_make_nccl_premul_sum",
    "_object_to_tensor",
    "_rank_not_in_group",
    "_reduce_scatter_base",
    "_resolve_process_group",
    "_tensor_to_object",
    "_world",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "default_pg_nccl_timeout",
    "default_pg_timeout",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_backend_config",
    "get_debug_level",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_mpi_available",
    "is_nccl_available",
    "is_torchelastic_launched",
    "is_ucc_available",
    "is_xccl_available",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "record_comm",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_op",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "register_rendezvous_handler",
    "rendezvous",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "shrink_group",
    "split_group",
    "supports_complex",
]


def _get_process_group_name(pg) -> str:
    """The name of a group in the table."""
    return _world.pg_names.get(pg, "None")


def _get_default_store() -> Store:
    """The store of the job."""
    return _get_default_group().store


def _rank_not_in_group(group) -> bool:
    """Whether this process is outside a group."""
    return group is GroupMember.NON_GROUP_MEMBER


def _get_pg_default_device(group=None):
    """The device on which a group's object collectives work: the host."""
    return device("cpu")


def _is_barrier_after_init() -> int:
    """The variable TORCH_DIST_INIT_BARRIER. Here init_process_group always waits for all ranks."""
    return int(os.environ.get("TORCH_DIST_INIT_BARRIER", "0"))


def _set_pg_timeout(timeout, group=None) -> None:
    """Sets the timeout for the operations of a group."""
    if not isinstance(timeout, timedelta):
        raise TypeError(f"timeout must be of type timedelta, but got {type(timeout)}")
    if _rank_not_in_group(group):
        raise ValueError("Invalid process group specified")
    pg = _get_default_group() if group is None else group
    pg.timeout = pg._backend.timeout = timeout
