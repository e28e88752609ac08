# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

def consume_prefix_in_state_dict_if_present(state_dict, prefix) -> _Any: ...
