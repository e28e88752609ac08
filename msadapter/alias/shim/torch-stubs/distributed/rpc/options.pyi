# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from typing import NamedTuple as _NamedTuple

DEFAULT_INIT_METHOD: _builtins.str
DEFAULT_NUM_WORKER_THREADS: _builtins.int
DEFAULT_RPC_TIMEOUT_SEC: _builtins.float
class RpcBackendOptions:
    init_method: _Any
    rpc_timeout: _Any
    def __init__(self, rpc_timeout: _float = ..., init_method: _str = ...) -> None: ...
class TensorPipeRpcBackendOptions(RpcBackendOptions):
    device_maps: _Any
    devices: _Any
    num_worker_threads: _Any
    def __init__(self, *, num_worker_threads: _int = ..., rpc_timeout: _float = ..., init_method: _str = ..., device_maps=..., devices=..., _transports=..., _channels=...) -> None: ...
    def set_device_map(self, to: _str, device_map) -> None: ...
    def set_devices(self, devices) -> None: ...
class WorkerInfo(_NamedTuple):
    name: _Any
    id: _Any
