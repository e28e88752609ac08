# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.optim.optimizer import Optimizer as _base_Optimizer

class SGD(_base_Optimizer):
    _step_supports_amp_scaling: _Any
    def __init__(self, params, lr=..., momentum=..., dampening=..., weight_decay=..., nesterov=..., *, maximize=..., foreach=..., differentiable=..., fused=...) -> None: ...
    def step(self, closure=...) -> _Any: ...
def sgd(params, d_p_list, momentum_buffer_list, has_sparse_grad=..., foreach=..., fused=..., grad_scale=..., found_inf=..., *, weight_decay, momentum, lr, dampening, nesterov, maximize) -> _Any: ...
