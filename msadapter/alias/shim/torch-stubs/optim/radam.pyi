# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.optim.optimizer import Optimizer as _base_Optimizer

class RAdam(_base_Optimizer):
    _step_supports_amp_scaling: _Any
    def __init__(self, params, lr=..., betas=..., eps=..., weight_decay=..., decoupled_weight_decay=..., *, foreach=..., maximize=..., capturable=..., differentiable=...) -> None: ...
    def step(self, closure=...) -> _Any: ...
def radam(params, grads, exp_avgs, exp_avg_sqs, state_steps, decoupled_weight_decay=..., foreach=..., differentiable=..., capturable=..., has_complex=..., maximize=..., *, beta1, beta2, lr, weight_decay, eps) -> _Any: ...
