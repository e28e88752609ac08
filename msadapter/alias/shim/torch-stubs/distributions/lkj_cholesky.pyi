# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions.distribution import Distribution as _base_Distribution

class LKJCholesky(_base_Distribution):
    _beta: _Any
    arg_constraints: _Any
    concentration: _Any
    dim: _Any
    support: _Any
    def __init__(self, dim, concentration=..., validate_args=...) -> None: ...
    def log_prob(self, value) -> _Any: ...
    def sample(self, sample_shape=...) -> _Any: ...
