# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

def make_fx(f, decomposition_table=..., tracing_mode=..., _allow_non_fake_inputs=..., *, pre_dispatch=..., record_module_stack=..., _allow_fake_constant=..., _error_on_data_dependent_ops=..., record_stack_traces=...) -> _Any: ...
