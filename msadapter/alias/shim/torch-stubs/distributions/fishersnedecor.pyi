# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions.distribution import Distribution as _base_Distribution

class FisherSnedecor(_base_Distribution):
    _gamma1: _Any
    _gamma2: _Any
    arg_constraints: _Any
    df1: _Any
    df2: _Any
    has_rsample: _Any
    mean: _Any
    mode: _Any
    support: _Any
    variance: _Any
    def __init__(self, df1, df2, validate_args=...) -> None: ...
    def log_prob(self, value) -> _Any: ...
    def rsample(self, sample_shape=...) -> _Any: ...
