"""torch._C._distributed_rpc: classes of torch.distributed.rpc, under the name of PyTorch's native module."""

from __future__ import annotations

from ..distributed.rpc.agent import RpcAgent
from ..distributed.rpc.api import (
    _get_current_rpc_agent,
    _is_current_rpc_agent_set,
    _set_rpc_timeout,
    get_rpc_timeout,
)
from ..distributed.rpc.options import RpcBackendOptions, WorkerInfo
from ..distributed.rpc.rref import PyRRef

TensorPipeAgent = RpcAgent

__all__ = [
    "PyRRef",
    "RpcAgent",
    "RpcBackendOptions",
    "TensorPipeAgent",
    "WorkerInfo",
    "_get_current_rpc_agent",
    "_is_current_rpc_agent_set",
    "_set_rpc_timeout",
    "get_rpc_timeout",
]
