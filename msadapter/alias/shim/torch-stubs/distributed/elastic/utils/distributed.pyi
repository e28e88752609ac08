# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributed.elastic.utils import get_socket_with_port as get_socket_with_port

def create_c10d_store(is_server: _bool, server_addr: _str, server_port: _int = ..., world_size: _int = ..., timeout: _float = ..., wait_for_workers: _bool = ..., retries=..., use_libuv: _bool | None = ...) -> _Any: ...
def get_free_port() -> _int: ...
