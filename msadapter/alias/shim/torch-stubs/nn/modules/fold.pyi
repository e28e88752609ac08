# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.nn.modules.module import Module as _base_Module

class Fold(_base_Module):
    dilation: _Any
    kernel_size: _Any
    output_size: _Any
    padding: _Any
    stride: _Any
    def __init__(self, output_size, kernel_size, dilation=..., padding=..., stride=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input) -> _Any: ...
class Unfold(_base_Module):
    dilation: _Any
    kernel_size: _Any
    padding: _Any
    stride: _Any
    def __init__(self, kernel_size, dilation=..., padding=..., stride=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input) -> _Any: ...
