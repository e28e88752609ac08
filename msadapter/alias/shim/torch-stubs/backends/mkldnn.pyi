# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

VERBOSE_OFF: _builtins.int
VERBOSE_ON: _builtins.int
VERBOSE_ON_CREATION: _builtins.int
allow_tf32: _Any
conv: _Any
deterministic: _builtins.bool
enabled: _builtins.bool
def flags(enabled=..., deterministic=..., allow_tf32=..., fp32_precision=...) -> _Any: ...
fp32_precision: _builtins.str
def is_available() -> _bool: ...
matmul: _Any
rnn: _Any
def set_flags(_enabled=..., _deterministic=..., _allow_tf32=..., _fp32_precision=...) -> _Any: ...
class verbose:
    level: _Any
    def __enter__(self) -> _Any: ...
    def __exit__(self, *exc) -> _Any: ...
    def __init__(self, level) -> None: ...
