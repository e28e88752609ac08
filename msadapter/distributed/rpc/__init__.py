"""torch.distributed.rpc: calls of functions on other processes, and references to values there.

A process takes part after ``init_rpc(name, rank=..., world_size=...)`` until ``shutdown()``. Whoever knows the secrets of a
job's store can let its workers run any function, as in PyTorch; strangers who reach a port of a worker are refused.
"""

from __future__ import annotations

import itertools
import os
from datetime import timedelta

from ..._errors import unsupported
from .. import autograd as dist_autograd
from ..setup import rendezvous
from ..store import PrefixStore
from . import api, backend_registry, constants, functions, internal, options, serving, state
from .agent import RpcAgent
from .api import (
    RRef,
    _all_gather,
    _barrier,
    _get_current_rpc_agent,
    _is_current_rpc_agent_set,
    _set_rpc_timeout,
    _wait_all,
    _wait_all_workers,
    get_rpc_timeout,
    get_worker_info,
    remote,
    rpc_async,
    rpc_sync,
    shutdown,
)
from .backend_registry import (
    BackendType,
    backend_registered,
    construct_rpc_backend_options,
    register_backend,
)
from .options import RpcBackendOptions, TensorPipeRpcBackendOptions, WorkerInfo
from .rref import PyRRef

__all__ = [
    "BackendType",
    "PyRRef",
    "RRef",
    "RpcAgent",
    "RpcBackendOptions",
    "TensorPipeAgent",
    "TensorPipeRpcBackendOptions",
    "WorkerInfo",
    "backend_registered",
    "construct_rpc_backend_options",
    "get_rpc_timeout",
    "get_worker_info",
    "init_rpc",
    "is_available",
    "register_backend",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]

TensorPipeAgent = RpcAgent
_jobs = itertools.count()


def is_available() -> bool:
    return True


def init_rpc(
    name: str, backend=None, rank: int = -1, world_size: int | None = None, rpc_backend_options=None
) -> None:
    """Let this process take part in remote procedure calls under a name. Returns when all workers do so.

    ``rank`` and ``world_size`` come from the arguments or from RANK and WORLD_SIZE. RuntimeError if two workers have the same
    name, or if this process takes part already. Workers that join or leave later are not supported.
    """
    if backend is not None and not isinstance(backend, BackendType):
        raise TypeError("Argument backend must be a member of BackendType")
    if rpc_backend_options is not None and not isinstance(rpc_backend_options, RpcBackendOptions):
        raise TypeError("Argument rpc_backend_options must be an instance of RpcBackendOptions")
    if rpc_backend_options is not None and not isinstance(rpc_backend_options, TensorPipeRpcBackendOptions):
        raise TypeError(f"Could not infer backend for options {rpc_backend_options}")
    if _is_current_rpc_agent_set():
        raise RuntimeError("RPC is already initialized")
    chosen = rpc_backend_options or TensorPipeRpcBackendOptions()
    size = world_size or int(os.environ.get("WORLD_SIZE", -1))
    if size == -1 and "world_size=" not in chosen.init_method:
        raise unsupported(
            "torch.distributed.rpc.init_rpc",
            "without world_size, for workers that join later, is not supported; "
            "give the number of workers as world_size or in WORLD_SIZE",
        )
    store, rank, size = next(rendezvous(chosen.init_method, rank=rank, world_size=size))
    if chosen.rpc_timeout > 0:
        store.set_timeout(timedelta(seconds=chosen.rpc_timeout))
    store = PrefixStore(f"rpc_prefix_{next(_jobs)}", store)
    agent = serving.begin(store, name, rank, size, chosen)
    try:
        _all_gather(None, timeout=chosen.rpc_timeout)
    except BaseException:
        api._finish(agent)
        raise


def _get_debug_info() -> dict[str, str]:
    """Return counts of references, messages and contexts of this worker."""
    agent = _get_current_rpc_agent()
    info = state.references().debug_info()
    info.update(agent.get_debug_info())
    info.update(dist_autograd._get_debug_info())
    return info


def _rref_context_get_debug_info() -> dict[str, str]:
    return state.references().debug_info()
