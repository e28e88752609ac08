# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

class LazyModuleMixin:
    _initialize_hook: _Any
    _load_hook: _Any
    cls_to_become: _Any
    def __init__(self, *args, **kwargs) -> None: ...
    def has_uninitialized_params(self) -> _Any: ...
    def initialize_parameters(self, *args, **kwargs) -> _Any: ...
