# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.nn.parallel import gather as gather
from torch.nn.parallel import parallel_apply as parallel_apply
from torch.nn.parallel import replicate as replicate
from torch.nn.parallel import scatter as scatter

def scatter_kwargs(inputs, kwargs, target_gpus, dim=...) -> _Any: ...
