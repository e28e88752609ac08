# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.nn.modules.module import Module as _base_Module

class AdaptiveLogSoftmaxWithLoss(_base_Module):
    cutoffs: _Any
    div_value: _Any
    head: _Any
    head_bias: _Any
    head_size: _Any
    in_features: _Any
    n_classes: _Any
    n_clusters: _Any
    shortlist_size: _Any
    tail: _Any
    def __init__(self, in_features, n_classes, cutoffs, div_value=..., head_bias=..., device=..., dtype=...) -> None: ...
    def forward(self, input_, target_) -> _Any: ...
    def log_prob(self, input) -> _Any: ...
    def predict(self, input) -> _Any: ...
    def reset_parameters(self) -> _Any: ...
