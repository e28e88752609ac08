# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.nn.modules.module import Module as _base_Module

class Upsample(_base_Module):
    align_corners: _Any
    mode: _Any
    name: _Any
    recompute_scale_factor: _Any
    scale_factor: _Any
    size: _Any
    def __init__(self, size=..., scale_factor=..., mode=..., align_corners=..., recompute_scale_factor=...) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input) -> _Any: ...
class UpsamplingBilinear2d(Upsample):
    def __init__(self, size=..., scale_factor=...) -> None: ...
class UpsamplingNearest2d(Upsample):
    def __init__(self, size=..., scale_factor=...) -> None: ...
