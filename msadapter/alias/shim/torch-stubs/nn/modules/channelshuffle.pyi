# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.nn.modules.module import Module as _base_Module

class ChannelShuffle(_base_Module):
    groups: _Any
    def __init__(self, groups) -> None: ...
    def extra_repr(self) -> _Any: ...
    def forward(self, input) -> _Any: ...
