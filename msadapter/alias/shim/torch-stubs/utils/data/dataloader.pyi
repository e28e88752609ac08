# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.utils.data import default_collate as default_collate
from torch.utils.data import default_convert as default_convert
from torch.utils.data import get_worker_info as get_worker_info
from typing import Any as _Any, Generic as _Generic
from typing_extensions import TypeVar as _TypeVar
_T = _TypeVar("_T", default=_Any)

class DataLoader(_Generic[_T]):
    _IterableDataset_len_called: _Any
    _context: _Any
    _dataset_kind: _Any
    _initialized: _Any
    _iterator: _Any
    batch_sampler: _Any
    batch_size: _Any
    collate_fn: _Any
    dataset: _Any
    drop_last: _Any
    generator: _Any
    in_order: _Any
    multiprocessing_context: _Any
    num_workers: _Any
    persistent_workers: _Any
    pin_memory: _Any
    pin_memory_device: _Any
    prefetch_factor: _Any
    sampler: _Any
    timeout: _Any
    worker_init_fn: _Any
    def __init__(self, dataset, batch_size=..., shuffle=..., sampler=..., batch_sampler=..., num_workers=..., collate_fn=..., pin_memory=..., drop_last=..., timeout=..., worker_init_fn=..., multiprocessing_context=..., generator=..., *, prefetch_factor=..., persistent_workers=..., pin_memory_device=..., in_order=...) -> None: ...
    def __iter__(self) -> _Any: ...
    def __len__(self) -> _Any: ...
    def __setattr__(self, name, value) -> _Any: ...
    def check_worker_number_rationality(self) -> None: ...
