# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.optim.optimizer import Optimizer as _base_Optimizer

class Adamax(_base_Optimizer):
    _step_supports_amp_scaling: _Any
    def __init__(self, params, lr=..., betas=..., eps=..., weight_decay=..., foreach=..., *, maximize=..., differentiable=..., capturable=...) -> None: ...
    def step(self, closure=...) -> _Any: ...
def adamax(params, grads, exp_avgs, exp_infs, state_steps, foreach=..., maximize=..., differentiable=..., capturable=..., has_complex=..., *, eps, beta1, beta2, lr, weight_decay) -> _Any: ...
