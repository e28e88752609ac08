"""torch.distributed.rpc.backend_registry: the kinds of transport. There is one, under the name TENSORPIPE."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from ..._errors import unsupported
from .constants import DEFAULT_INIT_METHOD, DEFAULT_NUM_WORKER_THREADS, DEFAULT_RPC_TIMEOUT_SEC
from .options import TensorPipeRpcBackendOptions

__all__ = [
    "BackendType",
    "backend_registered",
    "construct_rpc_backend_options",
    "init_backend",
    "register_backend",
]


class BackendValue(NamedTuple):
    """How a backend makes its options, and its agent."""

    construct_rpc_backend_options_handler: Any
    init_backend_handler: Any


def _options(
    rpc_timeout, init_method, num_worker_threads=DEFAULT_NUM_WORKER_THREADS, **kwargs
) -> TensorPipeRpcBackendOptions:
    return TensorPipeRpcBackendOptions(
        rpc_timeout=rpc_timeout, init_method=init_method, num_worker_threads=num_worker_threads, **kwargs
    )


def _no_agent(*args, **kwargs):
    raise unsupported("torch.distributed.rpc.init_backend", "is not supported; use init_rpc")


BackendType = enum.Enum("BackendType", {"TENSORPIPE": BackendValue(_options, _no_agent)})


def backend_registered(backend_name: str) -> bool:
    """Return whether there is a backend of this name."""
    return backend_name in BackendType.__members__


def register_backend(backend_name: str, construct_rpc_backend_options_handler, init_backend_handler):
    """Raise NotImplementedError, because agents of other packages cannot take part (docs/coverage.md)."""
    if backend_registered(backend_name):
        raise RuntimeError(f"RPC backend {backend_name}: already registered")
    raise unsupported("torch.distributed.rpc.register_backend")


def construct_rpc_backend_options(
    backend, rpc_timeout=DEFAULT_RPC_TIMEOUT_SEC, init_method=DEFAULT_INIT_METHOD, **kwargs
):
    """Return the options of a backend."""
    return backend.value.construct_rpc_backend_options_handler(rpc_timeout, init_method, **kwargs)


def init_backend(backend, *args, **kwargs):
    return backend.value.init_backend_handler(*args, **kwargs)
