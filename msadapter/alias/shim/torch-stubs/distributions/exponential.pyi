# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions.exp_family import ExponentialFamily as _base_ExponentialFamily

class Exponential(_base_ExponentialFamily):
    arg_constraints: _Any
    has_rsample: _Any
    mean: _Any
    mode: _Any
    rate: _Any
    stddev: _Any
    support: _Any
    variance: _Any
    def __init__(self, rate, validate_args=...) -> None: ...
    def cdf(self, value) -> _Any: ...
    def entropy(self) -> _Any: ...
    def icdf(self, value) -> _Any: ...
    def log_prob(self, value) -> _Any: ...
    def rsample(self, sample_shape=...) -> _Any: ...
