# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

default_pg_nccl_timeout: _Any
default_pg_timeout: _Any
