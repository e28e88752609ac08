# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.amp.autocast_mode import autocast as _base_autocast

class autocast(_base_autocast):
    def __init__(self, enabled: _bool = ..., dtype=..., cache_enabled: _bool = ...) -> None: ...
