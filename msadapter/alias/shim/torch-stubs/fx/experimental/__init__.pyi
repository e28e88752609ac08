# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.fx.experimental import proxy_tensor as proxy_tensor
from torch.fx.experimental import symbolic_shapes as symbolic_shapes

