# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions.distribution import Distribution as _base_Distribution

class Categorical(_base_Distribution):
    _num_events: _Any
    arg_constraints: _Any
    has_enumerate_support: _Any
    logits: _Any
    mean: _Any
    mode: _Any
    param_shape: _Any
    probs: _Any
    support: _Any
    total_count: _Any
    variance: _Any
    def __init__(self, probs=..., logits=..., validate_args=...) -> None: ...
    def entropy(self) -> _Any: ...
    def enumerate_support(self, expand=...) -> _Any: ...
    def log_prob(self, value) -> _Any: ...
    def sample(self, sample_shape=...) -> _Any: ...
