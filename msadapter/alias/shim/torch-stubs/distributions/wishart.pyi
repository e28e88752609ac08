# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions.exp_family import ExponentialFamily as _base_ExponentialFamily

class Wishart(_base_ExponentialFamily):
    _chi2: _Any
    _unbroadcasted_scale_tril: _Any
    arg_constraints: _Any
    covariance_matrix: _Any
    df: _Any
    has_rsample: _Any
    mean: _Any
    mode: _Any
    precision_matrix: _Any
    scale_tril: _Any
    support: _Any
    variance: _Any
    def __init__(self, df, covariance_matrix=..., precision_matrix=..., scale_tril=..., validate_args=...) -> None: ...
    def entropy(self) -> _Any: ...
    def expand(self, batch_shape, _instance=...) -> _Any: ...
    def log_prob(self, value) -> _Any: ...
    def rsample(self, sample_shape=..., max_try_correction=...) -> _Any: ...
