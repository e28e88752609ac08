# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.utils.data.distributed import DistributedSampler as _base_DistributedSampler
from typing import Any as _Any, Generic as _Generic
from typing_extensions import TypeVar as _TypeVar
_T = _TypeVar("_T", default=_Any)

class CyclingIterator(_Generic[_T]):
    _epoch: _Any
    _generator_fn: _Any
    _iter: _Any
    _n: _Any
    def __init__(self, n: _int, generator_fn, start_epoch: _int = ...) -> None: ...
    def __iter__(self) -> _Any: ...
    def __next__(self) -> _Any: ...
class ElasticDistributedSampler(_base_DistributedSampler[_T]):
    num_samples: _Any
    start_index: _Any
    total_size: _Any
    def __init__(self, dataset, num_replicas: _int | None = ..., rank: _int | None = ..., start_index: _int = ...) -> None: ...
    def __iter__(self) -> _Any: ...
