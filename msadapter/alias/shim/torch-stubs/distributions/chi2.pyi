# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributions.gamma import Gamma as _base_Gamma

class Chi2(_base_Gamma):
    arg_constraints: _Any
    df: _Any
    def __init__(self, df, validate_args=...) -> None: ...
    def expand(self, batch_shape, _instance=...) -> _Any: ...
