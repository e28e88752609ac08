# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributed.rpc import RRef as RRef
from torch.distributed.rpc import get_worker_info as get_worker_info
from torch.distributed.rpc import remote as remote
from torch.distributed.rpc import rpc_async as rpc_async
from torch.distributed.rpc import rpc_sync as rpc_sync

DEFAULT_SHUTDOWN_TIMEOUT: _builtins.int
UNSET_RPC_TIMEOUT: _builtins.float
def get_rpc_timeout() -> _float: ...
def shutdown(graceful: _bool = ..., timeout: _float = ...) -> None: ...
