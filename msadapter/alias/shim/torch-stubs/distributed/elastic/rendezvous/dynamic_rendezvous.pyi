# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from dataclasses import dataclass as _dataclass
from torch.distributed.elastic.rendezvous.api import RendezvousHandler as _base_RendezvousHandler
from torch.distributed.elastic.rendezvous.c10d_rendezvous_backend import RendezvousBackend as RendezvousBackend

class DynamicRendezvousHandler(_base_RendezvousHandler):
    _backend_name: _Any
    _bootstrap_store_info: _Any
    _heartbeat_lock: _Any
    _keep_alive_timer: _Any
    _op_executor: _Any
    _settings: _Any
    _shared_tcp_store_server: _Any
    _state_holder: _Any
    _store: _Any
    _this_node: _Any
    settings: _Any
    use_agent_store: _Any
    def __init__(self, node, settings, backend_name: _str, store, state_holder) -> None: ...
    @classmethod
    def from_backend(cls, run_id: _str, store, backend, min_nodes: _int, max_nodes: _int, local_addr: _str | None = ..., timeout=..., keep_alive_interval: _int = ..., keep_alive_max_attempt: _int = ...) -> _Any: ...
    def get_backend(self) -> _str: ...
    def get_run_id(self) -> _str: ...
    def is_closed(self) -> _bool: ...
    def next_rendezvous(self) -> _Any: ...
    def num_nodes_waiting(self) -> _int: ...
    def set_closed(self) -> None: ...
    def shutdown(self) -> _bool: ...
@_dataclass
class RendezvousSettings:
    keep_alive_interval: _Any
    keep_alive_max_attempt: _int
    max_nodes: _int
    min_nodes: _int
    run_id: _str
    timeout: _Any
    def __delattr__(self, name) -> _Any: ...
    def __init__(self, run_id: _str, min_nodes: _int, max_nodes: _int, timeout, keep_alive_interval, keep_alive_max_attempt: _int) -> None: ...
    def __setattr__(self, name, value) -> _Any: ...
class RendezvousTimeout:
    _close: _Any
    _heartbeat: _Any
    _join: _Any
    _last_call: _Any
    close: _Any
    heartbeat: _Any
    join: _Any
    last_call: _Any
    def __init__(self, join=..., last_call=..., close=..., heartbeat=...) -> None: ...
def create_handler(store, backend, params) -> _Any: ...
