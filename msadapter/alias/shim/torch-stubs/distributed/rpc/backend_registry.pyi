# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from enum import Enum as _Enum
from typing import NamedTuple as _NamedTuple

class BackendType(_Enum):
    TENSORPIPE = ...
class BackendValue(_NamedTuple):
    construct_rpc_backend_options_handler: _Any
    init_backend_handler: _Any
DEFAULT_INIT_METHOD: _builtins.str
DEFAULT_NUM_WORKER_THREADS: _builtins.int
DEFAULT_RPC_TIMEOUT_SEC: _builtins.float
def backend_registered(backend_name: _str) -> _bool: ...
def construct_rpc_backend_options(backend, rpc_timeout=..., init_method=..., **kwargs) -> _Any: ...
def init_backend(backend, *args, **kwargs) -> _Any: ...
def register_backend(backend_name: _str, construct_rpc_backend_options_handler, init_backend_handler) -> _Any: ...
