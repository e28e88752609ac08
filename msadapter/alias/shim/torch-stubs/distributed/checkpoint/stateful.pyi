# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from typing import Any as _Any, Generic as _Generic
from typing_extensions import TypeVar as _TypeVar
_T = _TypeVar("_T", default=_Any)

class Stateful(_Generic[_T]):
    def __init__(self, *args, **kwargs) -> None: ...
    def load_state_dict(self, state_dict) -> None: ...
    def state_dict(self) -> _Any: ...
