# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

DEFAULT_INIT_METHOD: _builtins.str
DEFAULT_NUM_WORKER_THREADS: _builtins.int
DEFAULT_RPC_TIMEOUT_SEC: _builtins.float
DEFAULT_SHUTDOWN_TIMEOUT: _builtins.int
UNSET_RPC_TIMEOUT: _builtins.float
