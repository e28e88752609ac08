# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *

class Join:
    _device: _Any
    _enable: _Any
    _group: _Any
    _hooks: _Any
    _joinables: _Any
    _rank: _Any
    _throws: _Any
    def __enter__(self) -> _Any: ...
    def __exit__(self, kind, value, traceback) -> _Any: ...
    def __init__(self, joinables, enable: _bool = ..., throw_on_early_termination: _bool = ..., **kwargs) -> None: ...
    @staticmethod
    def notify_join_context(joinable) -> _Any: ...
class JoinHook:
    def main_hook(self) -> None: ...
    def post_hook(self, is_last_joiner: _bool) -> None: ...
class Joinable:
    join_device: _Any
    join_process_group: _Any
    def join_hook(self, **kwargs) -> _Any: ...
