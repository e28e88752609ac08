# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.optim.optimizer import Optimizer as _base_Optimizer

class ASGD(_base_Optimizer):
    _step_supports_amp_scaling: _Any
    def __init__(self, params, lr=..., lambd=..., alpha=..., t0=..., weight_decay=..., foreach=..., maximize=..., differentiable=..., capturable=...) -> None: ...
    def step(self, closure=...) -> _Any: ...
def asgd(params, grads, axs, mus, etas, state_steps, foreach=..., maximize=..., differentiable=..., capturable=..., has_complex=..., *, lambd, lr, t0, alpha, weight_decay) -> _Any: ...
