# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.optim.optimizer import Optimizer as _base_Optimizer

class Adam(_base_Optimizer):
    _step_supports_amp_scaling: _Any
    def __init__(self, params, lr=..., betas=..., eps=..., weight_decay=..., amsgrad=..., *, foreach=..., maximize=..., capturable=..., differentiable=..., fused=..., decoupled_weight_decay=...) -> None: ...
    def step(self, closure=...) -> _Any: ...
def adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach=..., capturable=..., differentiable=..., fused=..., grad_scale=..., found_inf=..., has_complex=..., decoupled_weight_decay=..., *, amsgrad, beta1, beta2, lr, weight_decay, eps, maximize) -> _Any: ...
