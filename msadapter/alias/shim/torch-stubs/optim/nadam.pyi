# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.optim.optimizer import Optimizer as _base_Optimizer

class NAdam(_base_Optimizer):
    _step_supports_amp_scaling: _Any
    def __init__(self, params, lr=..., betas=..., eps=..., weight_decay=..., momentum_decay=..., decoupled_weight_decay=..., *, foreach=..., maximize=..., capturable=..., differentiable=...) -> None: ...
    def step(self, closure=...) -> _Any: ...
def nadam(params, grads, exp_avgs, exp_avg_sqs, mu_products, state_steps, decoupled_weight_decay=..., foreach=..., capturable=..., differentiable=..., has_complex=..., maximize=..., *, beta1, beta2, lr, weight_decay, momentum_decay, eps) -> _Any: ...
