# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributed.algorithms import ddp_comm_hooks as ddp_comm_hooks
from torch.distributed.algorithms import join as join
from torch.distributed.algorithms import model_averaging as model_averaging

