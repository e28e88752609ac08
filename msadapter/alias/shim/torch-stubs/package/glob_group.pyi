# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

class GlobGroup:
    _shown: _Any
    exclude: _Any
    include: _Any
    separator: _Any
    def __init__(self, include, *, exclude=..., separator: _str = ...) -> None: ...
    def __repr__(self) -> _str: ...
    def matches(self, candidate: _str) -> _bool: ...
GlobPattern = _Any
