# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions.distribution import Distribution as _base_Distribution

class MixtureSameFamily(_base_Distribution):
    _component_distribution: _Any
    _event_ndims: _Any
    _mixture_distribution: _Any
    _num_component: _Any
    arg_constraints: _Any
    component_distribution: _Any
    has_rsample: _Any
    mean: _Any
    mixture_distribution: _Any
    support: _Any
    variance: _Any
    def __init__(self, mixture_distribution, component_distribution, validate_args=...) -> None: ...
    def __repr__(self) -> _str: ...
    def cdf(self, x) -> _Any: ...
    def expand(self, batch_shape, _instance=...) -> _Any: ...
    def log_prob(self, x) -> _Any: ...
    def sample(self, sample_shape=...) -> _Any: ...
