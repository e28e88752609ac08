# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

def functional_call(module, parameters_and_buffers, args=..., kwargs=..., *, tie_weights=..., strict=...) -> _Any: ...
