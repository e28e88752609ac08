# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch.accelerator import current_accelerator as current_accelerator
from torch.accelerator import device_count as device_count
from torch.accelerator import device_index as device_index
from torch.accelerator import is_available as is_available
from torch.accelerator import set_device_index as set_device_idx
from torch.accelerator import set_device_index as set_device_index
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

