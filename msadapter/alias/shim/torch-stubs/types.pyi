# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

BoolLikeType = _Any
Device = _Any
FileLike = _Any
FloatLikeType = _Any
IntLikeType = _Any
Number = _Any
PySymType = _Any
class Storage:
    _cdata: _Any
    device: _Any
    dtype: _Any
