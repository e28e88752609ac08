# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.utils.data.dataset import IterableDataset as _base_IterableDataset
from typing import Any as _Any, Generic as _Generic
from typing_extensions import TypeVar as _TypeVar
_T = _TypeVar("_T", default=_Any)

class ShufflerIterDataPipe(_base_IterableDataset[_T]):
    def __init__(self, *args, **kwargs) -> None: ...
