# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions.distribution import Distribution as _base_Distribution

class LowRankMultivariateNormal(_base_Distribution):
    _capacitance_tril: _Any
    _unbroadcasted_cov_diag: _Any
    _unbroadcasted_cov_factor: _Any
    arg_constraints: _Any
    cov_diag: _Any
    cov_factor: _Any
    covariance_matrix: _Any
    has_rsample: _Any
    loc: _Any
    mean: _Any
    mode: _Any
    precision_matrix: _Any
    scale_tril: _Any
    support: _Any
    variance: _Any
    def __init__(self, loc, cov_factor, cov_diag, validate_args=...) -> None: ...
    def entropy(self) -> _Any: ...
    def log_prob(self, value) -> _Any: ...
    def rsample(self, sample_shape=...) -> _Any: ...
def capacitance_tril(w, d) -> _Any: ...
def log_det(w, d, capacitance) -> _Any: ...
def mahalanobis(w, d, x, capacitance) -> _Any: ...
