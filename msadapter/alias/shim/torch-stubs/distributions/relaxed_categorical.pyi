# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions.distribution import Distribution as _base_Distribution
from torch.distributions.transformed_distribution import TransformedDistribution as _base_TransformedDistribution

class ExpRelaxedCategorical(_base_Distribution):
    _categorical: _Any
    arg_constraints: _Any
    has_rsample: _Any
    logits: _Any
    param_shape: _Any
    probs: _Any
    support: _Any
    temperature: _Any
    def __init__(self, temperature, probs=..., logits=..., validate_args=...) -> None: ...
    def expand(self, batch_shape, _instance=...) -> _Any: ...
    def log_prob(self, value) -> _Any: ...
    def rsample(self, sample_shape=...) -> _Any: ...
class RelaxedOneHotCategorical(_base_TransformedDistribution):
    arg_constraints: _Any
    has_rsample: _Any
    logits: _Any
    probs: _Any
    support: _Any
    temperature: _Any
    def __init__(self, temperature, probs=..., logits=..., validate_args=...) -> None: ...
    def expand(self, batch_shape, _instance=...) -> _Any: ...
