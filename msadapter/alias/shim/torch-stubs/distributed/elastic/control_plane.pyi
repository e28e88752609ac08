# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

TORCH_WORKER_SERVER_SOCKET: _builtins.str
def worker_main() -> _Any: ...
