# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.nn.modules.module import Module as _base_Module

class CosineSimilarity(_base_Module):
    dim: _Any
    eps: _Any
    def __init__(self, dim=..., eps=...) -> None: ...
    def forward(self, x1, x2) -> _Any: ...
class PairwiseDistance(_base_Module):
    eps: _Any
    keepdim: _Any
    norm: _Any
    def __init__(self, p=..., eps=..., keepdim=...) -> None: ...
    def forward(self, x1, x2) -> _Any: ...
