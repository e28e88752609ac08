# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

allow_tf32: _builtins.bool
benchmark: _builtins.bool
benchmark_limit: _builtins.int
conv: _Any
depthwise_kernel: _builtins.str
deterministic: _builtins.bool
enabled: _builtins.bool
def flags(enabled=..., benchmark=..., benchmark_limit=..., deterministic=..., allow_tf32=..., fp32_precision=..., depthwise_kernel=...) -> _Any: ...
fp32_precision: _builtins.str
def is_acceptable(tensor) -> _bool: ...
def is_available() -> _bool: ...
rnn: _Any
def set_flags(_enabled=..., _benchmark=..., _benchmark_limit=..., _deterministic=..., _allow_tf32=..., _fp32_precision=..., _depthwise_kernel=...) -> _Any: ...
def version() -> _Any: ...
