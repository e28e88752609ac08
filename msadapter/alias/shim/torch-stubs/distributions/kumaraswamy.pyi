# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions.transformed_distribution import TransformedDistribution as _base_TransformedDistribution

class Kumaraswamy(_base_TransformedDistribution):
    arg_constraints: _Any
    concentration0: _Any
    concentration1: _Any
    has_rsample: _Any
    mean: _Any
    mode: _Any
    support: _Any
    variance: _Any
    def __init__(self, concentration1, concentration0, validate_args=...) -> None: ...
    def entropy(self) -> _Any: ...
    def expand(self, batch_shape, _instance=...) -> _Any: ...
