# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from typing import NamedTuple as _NamedTuple

class Match(_NamedTuple):
    anchor: _Any
    nodes_map: _Any
def replace_pattern(gm, pattern, replacement) -> _Any: ...
