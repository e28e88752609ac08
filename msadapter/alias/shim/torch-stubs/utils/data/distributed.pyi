# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.utils.data.sampler import Sampler as _base_Sampler
from typing import Any as _Any, Generic as _Generic
from typing_extensions import TypeVar as _TypeVar
_T = _TypeVar("_T", default=_Any)

class DistributedSampler(_base_Sampler[_T]):
    dataset: _Any
    drop_last: _Any
    epoch: _Any
    num_replicas: _Any
    num_samples: _Any
    rank: _Any
    seed: _Any
    shuffle: _Any
    total_size: _Any
    def __init__(self, dataset, num_replicas=..., rank=..., shuffle: _bool = ..., seed: _int = ..., drop_last: _bool = ...) -> None: ...
    def __iter__(self) -> _Any: ...
    def __len__(self) -> _Any: ...
    def set_epoch(self, epoch: _int) -> None: ...
