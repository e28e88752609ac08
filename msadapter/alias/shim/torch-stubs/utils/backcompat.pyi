# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

class Warning:
    enabled: _Any
    def __init__(self) -> None: ...
    def get_enabled(self) -> _bool: ...
    def set_enabled(self, value: _bool) -> None: ...
broadcast_warning: _Any
keepdim_warning: _Any
