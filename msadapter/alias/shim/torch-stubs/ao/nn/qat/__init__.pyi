# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.ao.nn.qat import modules as modules
from torch.ao.nn.qat.modules.linear import Linear as Linear

