# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributed import FileStore as FileStore
from torch.distributed import Store as Store
from torch.distributed import TCPStore as TCPStore
from torch.distributed.elastic.events import NodeState as NodeState
from torch.distributed.elastic.events import construct_and_record_rdzv_event as construct_and_record_rdzv_event
from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError as RendezvousConnectionError
from torch.distributed.elastic.rendezvous.api import RendezvousError as RendezvousError
from torch.distributed.elastic.rendezvous.api import RendezvousParameters as RendezvousParameters
from torch.distributed.elastic.rendezvous.api import RendezvousStateError as RendezvousStateError
from torch.distributed.elastic.rendezvous.utils import parse_rendezvous_endpoint as parse_rendezvous_endpoint

class C10dRendezvousBackend(RendezvousBackend):
    _key: _Any
    _store: _Any
    name: _Any
    def __init__(self, store, run_id: _str) -> None: ...
    def get_state(self) -> _Any: ...
    def set_state(self, state, token=...) -> _Any: ...
DEFAULT_PORT: _builtins.int
class RendezvousBackend:
    name: _Any
    def get_state(self) -> _Any: ...
    def set_state(self, state, token=...) -> _Any: ...
def create_backend(params) -> _Any: ...
