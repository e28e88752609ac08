# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.nn.modules.module import Module as Module

def skip_init(module_cls, *args, **kwargs) -> _Any: ...
