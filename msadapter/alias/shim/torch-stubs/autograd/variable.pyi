# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

class Variable:
    ...
class VariableMeta(_builtins.type):
    def __instancecheck__(cls, other) -> _bool: ...
