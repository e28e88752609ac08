# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions.transformed_distribution import TransformedDistribution as _base_TransformedDistribution

class LogisticNormal(_base_TransformedDistribution):
    arg_constraints: _Any
    has_rsample: _Any
    loc: _Any
    scale: _Any
    support: _Any
    def __init__(self, loc, scale, validate_args=...) -> None: ...
    def expand(self, batch_shape, _instance=...) -> _Any: ...
