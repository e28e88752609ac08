"""Initialises and destroys the job, creates process groups, and returns ranks."""

import hashlib
import os
import warnings

from . import backend as backends
from . import mpi_world, shared_backend, watchdog  # noqa: F401  shared_backend announces the backends
from .process_group import (
    Backend,
    GroupMember,
    ProcessGroup,
    default_group,
    default_pg_timeout,
    resolve,
    world,
)
from .store import FileStore, HashStore, PrefixStore, Store
from .tcp_store import TCPStore

_KNOWN = ("gloo", "nccl", "hccl", "mpi", "ucc", "xccl", "fake", "undefined", "lccl", "cncl")
_handlers: dict = {}


def is_available() -> bool:
    """Returns True, because the package is always available."""
    return True


def is_initialized() -> bool:
    """Whether init_process_group has been called."""
    return world.default_pg is not None


def is_backend_available(backend: str) -> bool:
    """Whether a backend's name is accepted."""
    return backend.lower() in ("gloo", "nccl", "hccl", "mpi")


def is_mpi_available() -> bool:
    """Returns True: the name mpi is accepted. CPU ranks always communicate over MPI."""
    return True


def is_nccl_available() -> bool:
    """Returns True: the name nccl is accepted. It means the accelerator's collectives."""
    return True


def is_gloo_available() -> bool:
    """Returns True: the name gloo is accepted."""
    return True


def is_ucc_available() -> bool:
    """Returns False, because UCC is not supported."""
    return False


def is_xccl_available() -> bool:
    """Returns False, because XCCL is not supported."""
    return False


def is_torchelastic_launched() -> bool:
    """Whether the process was started by torchrun."""
    return os.environ.get("TORCHELASTIC_RUN_ID") is not None


def register_rendezvous_handler(scheme: str, handler) -> None:
    """Registers `handler(url, timeout=...)`, which yields (store, rank, world_size), for a scheme of init methods."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def _env(name: str, given: int) -> int:
    if given != -1:
        return given
    if name not in os.environ:
        raise ValueError(
            "Error initializing torch.distributed using env:// rendezvous: environment "
            f"variable {name} "
            "expected, but not set"
        )
    return int(os.environ[name])


def rendezvous(url: str, rank: int = -1, world_size: int = -1, timeout=default_pg_timeout, **kwargs):
    """Yields (store, rank, world_size) for env://, tcp://host:port or file:///path."""
    scheme, _, rest = url.partition("://")
    if scheme in _handlers:
        yield from _handlers[scheme](url, timeout=timeout, **kwargs)
        return
    place, _, query = rest.partition("?")
    options = dict(part.split("=") for part in query.split("&") if part)
    if (rank != -1 or world_size != -1) and options.keys() & {"rank", "world_size"}:
        raise AssertionError(f"The url: {url} has node-specific arguments(rank, world_size) already.")
    rank, world_size = int(options.get("rank", rank)), int(options.get("world_size", world_size))
    if scheme == "env":
        rank, world_size = _env("RANK", rank), _env("WORLD_SIZE", world_size)
        host, port = os.environ.get("MASTER_ADDR", "localhost"), int(os.environ.get("MASTER_PORT", 0))
        yield _tcp_store(host, port, rank, world_size, timeout), rank, world_size
    elif scheme == "tcp":
        host, colon, port = place.rpartition(":")
        if not colon or port.endswith("]"):  # a number in brackets is an address of IPv6
            raise _url_error(url, "port number missing")
        _need(url, rank, world_size)
        if not host:
            raise AssertionError("hostname cannot be None")
        yield _tcp_store(host, int(port), rank, world_size, timeout), rank, world_size
    elif scheme == "file":
        if not place:
            raise _url_error(url, "path missing")
        _need(url, rank, world_size)
        yield FileStore(place, world_size), rank, world_size
    else:
        raise RuntimeError(f"No rendezvous handler for {scheme}://")


def _url_error(url: str, what: str) -> ValueError:
    scheme = url.partition(":")[0]
    return ValueError(f"Error initializing torch.distributed using {scheme}:// rendezvous: {what}")


def _need(url, rank, world_size):
    for name, value in (("rank", rank), ("world size", world_size)):
        if value == -1:
            raise _url_error(url, f"{name} parameter missing")


# Stores of jobs, by port. Each is kept after destroy_process_group, because another rank may still be about to leave.
_kept: dict[int, TCPStore] = {}


def _tcp_store(host, port, rank, world_size, timeout):
    """The job's store. The launcher runs it if its environment variables say so, otherwise rank 0."""
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return PrefixStore(f"/worker/attempt_{attempt}", TCPStore(host, port, timeout=timeout))
    store = TCPStore(
        "127.0.0.1" if world_size == 1 else host,  # no other process needs this store
        port,
        world_size,
        is_master=rank == 0,
        timeout=timeout,
        multi_tenant=True,
        wait_for_workers=False,
    )
    _kept[port] = store
    return store


def init_process_group(
    backend=None,
    init_method=None,
    timeout=None,
    world_size: int = -1,
    rank: int = -1,
    store=None,
    group_name: str = "",
    pg_options=None,
    device_id=None,
    _ranks=None,
) -> None:
    """Starts the job and creates the group of all processes.

    backend: nccl, gloo, hccl, mpi, a map like 'cpu:gloo,cuda:nccl', or None. Rank and size come from the
    arguments, the init_method or the environment. _ranks: numbers from which the name of the group is made; PyTorch's jobs of
    several worlds in one store need them. ValueError when called twice.
    """
    if is_initialized():
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise ValueError("Cannot specify both init_method and store.")
    name = _backend_name(backend)
    timeout = timeout or _timeout_of(pg_options, name) or default_pg_timeout
    if store is not None:
        if world_size <= 0:
            raise ValueError("world_size must be positive if using store")
        if rank < 0:
            raise ValueError("rank must be non-negative if using store")
    elif name == "mpi" and init_method is None and rank == world_size == -1 and "RANK" not in os.environ:
        under = mpi_world.under_mpiexec()
        store, rank, world_size = mpi_world.meet_under_mpiexec() if under else (HashStore(), 0, 1)
    else:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout))
    if not isinstance(store, Store):
        raise TypeError("store must be a torch.distributed.Store")
    if not 0 <= rank < world_size:
        raise ValueError(
            f"rank must be at least 0 and less than world_size, but rank is {rank} and world_size {world_size}"
        )
    ranks = list(range(world_size))
    store = PrefixStore(f"job/{world.starts}", store)  # a store may serve several jobs, one after the other
    world.starts += 1
    moving = backends.create(name, rank, world_size, ranks, store, timeout)
    world.group_count = 1
    group = ProcessGroup(
        rank,
        ranks,
        str(backend or name),
        moving,
        _name_of_ranks(_ranks) if _ranks else group_name or "0",
        "default_pg",
        PrefixStore("default_pg", store),
        timeout,
    )
    group.bound_device_id = device_id
    world.default_pg = world.add(group)
    if world_size > 1:
        watchdog.watch.start(store, rank, lambda: [pg._backend for pg in list(world.pg_map)])


def _backend_name(backend) -> str:
    """One of the known names; in a map of devices the accelerator's."""
    if backend is None:
        return "nccl"
    text = str(backend).lower()
    if ":" in text:
        table = dict(part.split(":") for part in text.split(","))
        text = table.get("cuda") or table.get("npu") or next(iter(table.values()))
    if text not in _KNOWN and text not in backends._factories:
        raise ValueError(f"Invalid backend: '{backend}'. Known backends: {', '.join(_KNOWN)}")
    return text


def new_group(
    ranks=None,
    timeout=None,
    backend=None,
    pg_options=None,
    use_local_synchronization=False,
    group_desc=None,
    device_id=None,
    sort_ranks=True,
):
    """Creates a group of some processes. Returns GroupMember.NON_GROUP_MEMBER if this process is not in it.

    ranks: the global ranks of the members, by default those of all processes. The members are numbered in ascending order of their
    global ranks, and with sort_ranks=False in the order of `ranks`, which must then be the same in all processes.

    All processes of the job must call this. With use_local_synchronization only the members of the group call it; another
    process that calls it gets None. pg_options is an Options object, whose timeout is used if `timeout` is not given. Its
    stream priority has no effect on a host. Raises TypeError for other pg_options.
    """
    everyone = default_group()
    timeout = timeout or _timeout_of(pg_options, backend or everyone._backend_name)
    if use_local_synchronization and _backend_name(backend or everyone._backend_name) == "mpi":
        raise ValueError("MPI backend doesn't support use_local_synchronization=True")
    ranks = list(range(everyone.size()) if ranks is None else ranks)
    if sort_ranks:
        ranks.sort()
    if len(ranks) > everyone.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by init_process_group"
        )
    for rank in ranks:
        if not 0 <= rank < everyone.size():
            raise ValueError("The new group's rank should be within the world_size set by init_process_group")
    if len(set(ranks)) != len(ranks):
        raise ValueError(f"the ranks of a new group must differ, but got {ranks}")
    if use_local_synchronization:
        if everyone.rank() not in ranks:
            return None
        name = _name_of_ranks(ranks)
    else:
        name = str(world.group_count)
        world.group_count += 1
    if everyone.rank() not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    chosen = backend or everyone._backend_name
    timeout = timeout or default_pg_timeout
    store = PrefixStore(name, everyone.store)
    own = ranks.index(everyone.rank())
    moving = backends.create(_backend_name(chosen), own, len(ranks), ranks, store, timeout, everyone._backend)
    pg = ProcessGroup(own, ranks, str(chosen), moving, name, group_desc or "undefined", store, timeout)
    return world.add(pg)


def _name_of_ranks(ranks) -> str:
    """A group name that its members derive from the ranks alone, because processes may have created different groups."""
    name = hashlib.sha1("_".join(map(str, ranks)).encode()).hexdigest()
    while name in world.pg_names.values():
        name = hashlib.sha1(f"{name}_".encode()).hexdigest()
    return name


def _timeout_of(options, backend):
    """The timeout of a group's options; None if they have none."""
    if options is None:
        return None
    if not isinstance(options, ProcessGroup.Options):
        raise TypeError(
            f"pg_options of the backend {str(backend)!r} must be ProcessGroup.Options or None, "
            f"not {type(options).__name__}"
        )
    return getattr(options, "_timeout", None)


SHRINK_DEFAULT, SHRINK_ABORT = 0, 1


def shrink_group(ranks_to_exclude, group=None, shrink_flags=SHRINK_DEFAULT, pg_options=None):
    """Raises TypeError, as PyTorch does for every backend but NCCL: MPI and HCCL cannot drop ranks from a group.

    `new_group(..., use_local_synchronization=True)` makes a group of the ranks that are left. Before, the arguments are
    checked as in PyTorch.
    """
    if not isinstance(ranks_to_exclude, list):
        raise TypeError(
            f"ranks_to_exclude must be a list, but got {type(ranks_to_exclude).__name__}. Example: [1, 3, 5] to exclude ranks 1, "
            "3, and 5."
        )
    if not ranks_to_exclude:
        raise ValueError(
            "ranks_to_exclude cannot be empty. To shrink a group, you must specify at least one rank to exclude. Example: "
            "[failed_rank_id]"
        )
    if shrink_flags not in (SHRINK_DEFAULT, SHRINK_ABORT):
        raise ValueError(
            f"Invalid shrink_flags value: {shrink_flags}. Must be one of: SHRINK_DEFAULT ({SHRINK_DEFAULT}) or SHRINK_ABORT "
            f"({SHRINK_ABORT}). Use SHRINK_ABORT to abort ongoing operations before shrinking."
        )
    target = group or default_group()
    if target.size() <= 1:
        raise ValueError(
            f"Cannot shrink a process group with size {target.size()}. Group must have at least 2 ranks to support shrinking."
        )
    raise TypeError(
        f"Process group backend for '{world.pg_names[target]}' does not support shrinking operations."
    )


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Creates groups of `group_size` consecutive ranks of a group. Returns (this process's group, all groups)."""
    size = get_world_size(group)
    if group_size is None:
        raise ValueError("Default group size only takes effect when there are accelerators in the cluster")
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={group_size}'")
    ranks = get_process_group_ranks(group)
    lists = [ranks[start : start + group_size] for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None
):
    """Creates groups from lists of ranks. Returns (this process's group, all groups)."""
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    groups, own, seen = [], None, set()
    for ranks in ranks_per_subgroup_list:
        if seen & set(ranks):
            raise ValueError(f"Rank {sorted(seen & set(ranks))[0]} has appeared in two subgroups")
        seen |= set(ranks)
        made = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        groups.append(made)
        own = made if get_rank() in ranks else own
    return own, groups


def split_group(
    parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, backend=None
):
    """Splits `parent_pg` into groups given by lists of its ranks, and returns this process's group.

    The members of a group are numbered in ascending order of their ranks in `parent_pg`.
    """
    parent = parent_pg or default_group()
    if not split_ranks:
        raise ValueError("split_ranks cannot be None")
    own = None
    for part in split_ranks:
        ranks = [parent._ranks[i] for i in sorted(part)]
        made = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc, sort_ranks=False)
        own = made if made is not GroupMember.NON_GROUP_MEMBER else own
    return own


def destroy_process_group(group=None) -> None:
    """Destroys a group. With None or the default group, it ends the job."""
    if group is GroupMember.NON_GROUP_MEMBER:
        return
    if group is None or group is world.default_pg:
        default_group()
        mpi_world.job.confirm()
        mpi_world.job.over()
        for pg in list(world.pg_map):
            pg._backend.close()
        watchdog.watch.stop()
        world.clear()
        return
    if group not in world.pg_map:
        raise ValueError("Invalid process group specified or has been destroyed.")
    group._backend.close()
    world.remove(group)


# -- ranks -------------------------------------------------------------------------------------------------
def get_rank(group=None) -> int:
    """Rank of this process in a group, -1 if it is not in it."""
    pg = resolve(group)
    return -1 if pg is None else pg.rank()


def get_world_size(group=None) -> int:
    """Number of processes of a group, -1 if this one is not in it."""
    pg = resolve(group)
    return -1 if pg is None else pg.size()


def get_backend(group=None) -> Backend:
    """Name of a group's backend."""
    pg = resolve(group)
    if pg is None:
        raise ValueError("Invalid process group specified")
    return Backend(_backend_name(pg._backend_name))


def get_backend_config(group=None) -> str:
    """The backend string that was passed when the group was created."""
    return resolve(group)._backend_name


def get_default_backend_for_device(device) -> str:
    """'gloo' for the host, 'nccl' or 'hccl' for the accelerator."""
    kind = str(device).partition(":")[0]
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]


def get_global_rank(group, group_rank: int) -> int:
    """The global rank of a rank inside a group."""
    pg = resolve(group)
    if not 0 <= group_rank < pg.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {pg}")
    return pg._ranks[group_rank]


def get_group_rank(group, global_rank: int) -> int:
    """The rank inside a group of a global rank."""
    pg = resolve(group)
    if pg not in world.pg_map:
        raise ValueError(
            f"Group {group} is not registered, please create group with torch.distributed.new_group API"
        )
    if global_rank not in pg._ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return pg._ranks.index(global_rank)


def get_process_group_ranks(group) -> list:
    """The global ranks of a group's processes."""
    return list(resolve(group)._ranks)


def get_node_local_rank(fallback_rank=None) -> int:
    """Rank among the processes of this machine (LOCAL_RANK)."""
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device "
        "context and "
        "want the code to run locally instead."
    )


def get_pg_count() -> int:
    """Number of groups."""
    return world.group_count


def not_in_group(group, what: str) -> bool:
    """Returns True, with torch's warning, if this process is not in the group. The operation then does nothing."""
    if resolve(group) is not None:
        return False
    warnings.warn(
        f"Running {what} on global rank {get_rank()} which does not belong to the given group.", stacklevel=3
    )
    return True
