# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

class ConstraintRegistry:
    _registry: _Any
    def __call__(self, constraint) -> _Any: ...
    def __init__(self) -> None: ...
    def register(self, constraint, factory=...) -> _Any: ...
biject_to: _Any
transform_to: _Any
