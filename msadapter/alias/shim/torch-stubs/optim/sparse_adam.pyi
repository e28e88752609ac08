# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.optim.optimizer import Optimizer as _base_Optimizer

class SparseAdam(_base_Optimizer):
    _step_supports_amp_scaling: _Any
    def __init__(self, params, lr=..., betas=..., eps=..., maximize=...) -> None: ...
    def step(self, closure=...) -> _Any: ...
