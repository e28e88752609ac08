# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.optim.adam import Adam as _base_Adam

class AdamW(_base_Adam):
    def __init__(self, params, lr=..., betas=..., eps=..., weight_decay=..., amsgrad=..., *, maximize=..., foreach=..., capturable=..., differentiable=..., fused=...) -> None: ...
def adamw(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach=..., capturable=..., differentiable=..., fused=..., grad_scale=..., found_inf=..., has_complex=..., *, amsgrad, beta1, beta2, lr, weight_decay, eps, maximize) -> _Any: ...
