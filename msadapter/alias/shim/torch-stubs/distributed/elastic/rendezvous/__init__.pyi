# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributed.elastic.rendezvous import api as api
from torch.distributed.elastic.rendezvous import c10d_rendezvous_backend as c10d_rendezvous_backend
from torch.distributed.elastic.rendezvous import dynamic_rendezvous as dynamic_rendezvous
from torch.distributed.elastic.rendezvous import registry as registry
from torch.distributed.elastic.rendezvous import static_tcp_rendezvous as static_tcp_rendezvous
from torch.distributed.elastic.rendezvous import utils as utils
from torch.distributed.elastic.rendezvous.api import RendezvousClosedError as RendezvousClosedError
from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError as RendezvousConnectionError
from torch.distributed.elastic.rendezvous.api import RendezvousError as RendezvousError
from torch.distributed.elastic.rendezvous.api import RendezvousGracefulExitError as RendezvousGracefulExitError
from torch.distributed.elastic.rendezvous.api import RendezvousHandler as RendezvousHandler
from torch.distributed.elastic.rendezvous.api import RendezvousHandlerRegistry as RendezvousHandlerRegistry
from torch.distributed.elastic.rendezvous.api import RendezvousInfo as RendezvousInfo
from torch.distributed.elastic.rendezvous.api import RendezvousParameters as RendezvousParameters
from torch.distributed.elastic.rendezvous.api import RendezvousStateError as RendezvousStateError
from torch.distributed.elastic.rendezvous.api import RendezvousStoreInfo as RendezvousStoreInfo
from torch.distributed.elastic.rendezvous.api import RendezvousTimeoutError as RendezvousTimeoutError

RendezvousHandlerCreator: _Any
rendezvous_handler_registry: _Any
