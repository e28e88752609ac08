# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.optim.optimizer import Optimizer as _base_Optimizer

class Adadelta(_base_Optimizer):
    _step_supports_amp_scaling: _Any
    def __init__(self, params, lr=..., rho=..., eps=..., weight_decay=..., foreach=..., *, capturable=..., maximize=..., differentiable=...) -> None: ...
    def step(self, closure=...) -> _Any: ...
def adadelta(params, grads, square_avgs, acc_deltas, state_steps, capturable=..., foreach=..., differentiable=..., has_complex=..., *, lr, rho, eps, weight_decay, maximize) -> _Any: ...
