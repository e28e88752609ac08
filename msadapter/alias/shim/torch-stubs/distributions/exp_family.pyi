# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions.distribution import Distribution as _base_Distribution

class ExponentialFamily(_base_Distribution):
    def entropy(self) -> _Any: ...
