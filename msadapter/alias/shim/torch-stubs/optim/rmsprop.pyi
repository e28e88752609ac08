# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.optim.optimizer import Optimizer as _base_Optimizer

class RMSprop(_base_Optimizer):
    _step_supports_amp_scaling: _Any
    def __init__(self, params, lr=..., alpha=..., eps=..., weight_decay=..., momentum=..., centered=..., capturable=..., foreach=..., maximize=..., differentiable=...) -> None: ...
    def step(self, closure=...) -> _Any: ...
def rmsprop(params, grads, square_avgs, grad_avgs, momentum_buffer_list, state_steps, foreach=..., maximize=..., differentiable=..., capturable=..., has_complex=..., *, lr, alpha, eps, weight_decay, momentum, centered) -> _Any: ...
