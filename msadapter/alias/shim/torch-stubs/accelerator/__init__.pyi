# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.accelerator import graphs as graphs
from torch.accelerator import memory as memory
from torch.cuda import current_device as current_device_idx
from torch.cuda import current_device as current_device_index
from torch.cuda.memory import empty_cache as empty_cache
from torch.cuda.memory import max_memory_allocated as max_memory_allocated
from torch.cuda.memory import max_memory_reserved as max_memory_reserved
from torch.cuda.memory import mem_get_info as get_memory_info
from torch.cuda.memory import memory_allocated as memory_allocated
from torch.cuda.memory import memory_reserved as memory_reserved
from torch.cuda.memory import memory_stats as memory_stats
from torch.cuda.memory import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from torch.cuda.memory import reset_peak_memory_stats as reset_peak_memory_stats
from torch.cuda.streams import current_stream as current_stream
from torch.cuda.streams import set_stream as set_stream
from torch.cuda.streams import synchronize as synchronize

def current_accelerator(check_available: _bool = ...) -> _Any: ...
def device_count() -> _int: ...
class device_index:
    idx: _Any
    prev_idx: _Any
    def __enter__(self) -> _Any: ...
    def __exit__(self, *exc) -> _Any: ...
    def __init__(self, device) -> None: ...
def is_available() -> _bool: ...
set_device_idx = set_device_index
def set_device_index(device) -> None: ...
