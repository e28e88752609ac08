# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

def parse_rendezvous_endpoint(endpoint: _str | None, default_port: _int) -> _Any: ...
