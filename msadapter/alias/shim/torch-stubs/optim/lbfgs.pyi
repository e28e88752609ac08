# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.optim.optimizer import Optimizer as _base_Optimizer

class LBFGS(_base_Optimizer):
    _numel_cache: _Any
    _params: _Any
    def __init__(self, params, lr=..., max_iter=..., max_eval=..., tolerance_grad=..., tolerance_change=..., history_size=..., line_search_fn=...) -> None: ...
    def step(self, closure) -> _Any: ...
