# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch._tensor import Tensor as Tensor
from torch.autograd.grad_mode import no_grad as no_grad
from torch.distributed import all_gather_object as all_gather_object
from torch.distributed import get_world_size as get_world_size

