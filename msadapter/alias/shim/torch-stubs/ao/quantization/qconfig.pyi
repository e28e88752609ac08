# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from typing import NamedTuple as _NamedTuple

class QConfig(_NamedTuple):
    activation: _Any
    weight: _Any
default_per_channel_qconfig: _Any
default_qat_qconfig: _Any
default_qconfig: _Any
def get_default_qat_qconfig(backend=..., version=...) -> _Any: ...
def get_default_qconfig(backend=..., version=...) -> _Any: ...
