# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.fx.interpreter import Interpreter as _base_Interpreter
from typing import NamedTuple as _NamedTuple

class ShapeProp(_base_Interpreter):
    def __init__(self, gm, fake_mode=...) -> None: ...
    def propagate(self, *args) -> _Any: ...
    def run_node(self, n) -> _Any: ...
class TensorMetadata(_NamedTuple):
    shape: _Any
    dtype: _Any
    requires_grad: _Any
    stride: _Any
    memory_format: _Any
    is_quantized: _Any
    qparams: _Any
