# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.optim.optimizer import Optimizer as _base_Optimizer

class Rprop(_base_Optimizer):
    _step_supports_amp_scaling: _Any
    def __init__(self, params, lr=..., etas=..., step_sizes=..., *, capturable=..., foreach=..., maximize=..., differentiable=...) -> None: ...
    def step(self, closure=...) -> _Any: ...
def rprop(params, grads, prevs, step_sizes, state_steps, foreach=..., capturable=..., maximize=..., differentiable=..., has_complex=..., *, step_size_min, step_size_max, etaminus, etaplus) -> _Any: ...
