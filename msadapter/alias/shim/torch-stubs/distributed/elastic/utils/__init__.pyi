# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.distributed.elastic.utils import data as data
from torch.distributed.elastic.utils import distributed as distributed
from torch.distributed.elastic.utils import logging as logging
from torch.distributed.elastic.utils import store as store

def get_env_variable_or_raise(env_name: _str) -> _str: ...
def get_socket_with_port() -> _Any: ...
class macros:
    local_rank: _Any
    @staticmethod
    def substitute(args, local_rank: _str) -> _Any: ...
