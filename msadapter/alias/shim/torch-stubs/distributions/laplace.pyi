# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions.distribution import Distribution as _base_Distribution

class Laplace(_base_Distribution):
    arg_constraints: _Any
    has_rsample: _Any
    loc: _Any
    mean: _Any
    mode: _Any
    scale: _Any
    stddev: _Any
    support: _Any
    variance: _Any
    def __init__(self, loc, scale, validate_args=...) -> None: ...
    def cdf(self, value) -> _Any: ...
    def entropy(self) -> _Any: ...
    def icdf(self, value) -> _Any: ...
    def log_prob(self, value) -> _Any: ...
    def rsample(self, sample_shape=...) -> _Any: ...
