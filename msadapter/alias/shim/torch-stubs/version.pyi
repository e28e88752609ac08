# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

__version__: _builtins.str
cuda: _Any
debug: _builtins.bool
git_version: _builtins.str
hip: _Any
xpu: _Any
