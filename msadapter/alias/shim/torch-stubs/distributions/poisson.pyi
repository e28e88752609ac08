# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions.exp_family import ExponentialFamily as _base_ExponentialFamily

class Poisson(_base_ExponentialFamily):
    arg_constraints: _Any
    mean: _Any
    mode: _Any
    rate: _Any
    support: _Any
    variance: _Any
    def __init__(self, rate, validate_args=...) -> None: ...
    def log_prob(self, value) -> _Any: ...
    def sample(self, sample_shape=...) -> _Any: ...
