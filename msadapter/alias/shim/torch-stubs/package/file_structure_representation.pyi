# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

class Directory:
    children: _Any
    is_dir: _Any
    name: _Any
    def __init__(self, name: _str, is_dir: _bool) -> None: ...
    def has_file(self, filename: _str) -> _bool: ...
GlobPattern = _Any
def directory_of(name: _str, files, include, exclude) -> _Any: ...
