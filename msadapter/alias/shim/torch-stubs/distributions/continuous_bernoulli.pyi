# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions.exp_family import ExponentialFamily as _base_ExponentialFamily

class ContinuousBernoulli(_base_ExponentialFamily):
    _lims: _Any
    arg_constraints: _Any
    has_rsample: _Any
    logits: _Any
    mean: _Any
    param_shape: _Any
    probs: _Any
    stddev: _Any
    support: _Any
    total_count: _Any
    variance: _Any
    def __init__(self, probs=..., logits=..., lims=..., validate_args=...) -> None: ...
    def cdf(self, value) -> _Any: ...
    def entropy(self) -> _Any: ...
    def icdf(self, value) -> _Any: ...
    def log_prob(self, value) -> _Any: ...
    def rsample(self, sample_shape=...) -> _Any: ...
    def sample(self, sample_shape=...) -> _Any: ...
