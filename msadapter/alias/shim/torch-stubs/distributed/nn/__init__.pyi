# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributed.nn import api as api
from torch.distributed.nn import functional as functional
from torch.distributed.nn.api.remote_module import RemoteModule as RemoteModule
from torch.distributed.nn.functional import all_gather as all_gather
from torch.distributed.nn.functional import all_reduce as all_reduce
from torch.distributed.nn.functional import broadcast as broadcast

