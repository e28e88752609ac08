# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch import AcceleratorError as AcceleratorError
from torch import OutOfMemoryError as OutOfMemoryError
from torch.accelerator import device_count as device_count
from torch.accelerator import is_available as is_available
from torch.cuda import _utils as _utils
from torch.cuda import amp as amp
from torch.cuda import graphs as graphs
from torch.cuda import memory as memory
from torch.cuda import nccl as nccl
from torch.cuda import nvtx as nvtx
from torch.cuda import profiler as profiler
from torch.cuda import random as random
from torch.cuda import sparse as sparse
from torch.cuda import streams as streams
from torch.cuda import tunable as tunable
from torch.cuda.graphs import CUDAGraph as CUDAGraph
from torch.cuda.graphs import graph as graph
from torch.cuda.graphs import graph_pool_handle as graph_pool_handle
from torch.cuda.graphs import is_current_stream_capturing as is_current_stream_capturing
from torch.cuda.graphs import make_graphed_callables as make_graphed_callables
from torch.cuda.memory import CUDAPluggableAllocator as CUDAPluggableAllocator
from torch.cuda.memory import MemPool as MemPool
from torch.cuda.memory import caching_allocator_alloc as caching_allocator_alloc
from torch.cuda.memory import caching_allocator_delete as caching_allocator_delete
from torch.cuda.memory import caching_allocator_enable as caching_allocator_enable
from torch.cuda.memory import change_current_allocator as change_current_allocator
from torch.cuda.memory import device_memory_used as device_memory_used
from torch.cuda.memory import empty_cache as empty_cache
from torch.cuda.memory import get_allocator_backend as get_allocator_backend
from torch.cuda.memory import get_per_process_memory_fraction as get_per_process_memory_fraction
from torch.cuda.memory import host_memory_stats as host_memory_stats
from torch.cuda.memory import host_memory_stats_as_nested_dict as host_memory_stats_as_nested_dict
from torch.cuda.memory import list_gpu_processes as list_gpu_processes
from torch.cuda.memory import max_memory_allocated as max_memory_allocated
from torch.cuda.memory import max_memory_reserved as max_memory_cached
from torch.cuda.memory import max_memory_reserved as max_memory_reserved
from torch.cuda.memory import mem_get_info as mem_get_info
from torch.cuda.memory import memory_allocated as memory_allocated
from torch.cuda.memory import memory_reserved as memory_cached
from torch.cuda.memory import memory_reserved as memory_reserved
from torch.cuda.memory import memory_snapshot as memory_snapshot
from torch.cuda.memory import memory_stats as memory_stats
from torch.cuda.memory import memory_stats_as_nested_dict as memory_stats_as_nested_dict
from torch.cuda.memory import memory_summary as memory_summary
from torch.cuda.memory import reset_accumulated_memory_stats as reset_accumulated_memory_stats
from torch.cuda.memory import reset_peak_host_memory_stats as reset_accumulated_host_memory_stats
from torch.cuda.memory import reset_peak_host_memory_stats as reset_peak_host_memory_stats
from torch.cuda.memory import reset_peak_memory_stats as reset_max_memory_allocated
from torch.cuda.memory import reset_peak_memory_stats as reset_max_memory_cached
from torch.cuda.memory import reset_peak_memory_stats as reset_peak_memory_stats
from torch.cuda.memory import set_per_process_memory_fraction as set_per_process_memory_fraction
from torch.cuda.memory import use_mem_pool as use_mem_pool
from torch.cuda.random import get_rng_state as get_rng_state
from torch.cuda.random import get_rng_state_all as get_rng_state_all
from torch.cuda.random import initial_seed as initial_seed
from torch.cuda.random import manual_seed as manual_seed
from torch.cuda.random import manual_seed_all as manual_seed_all
from torch.cuda.random import seed as seed
from torch.cuda.random import seed_all as seed_all
from torch.cuda.random import set_rng_state as set_rng_state
from torch.cuda.random import set_rng_state_all as set_rng_state_all
from torch.cuda.streams import Event as Event
from torch.cuda.streams import ExternalStream as ExternalStream
from torch.cuda.streams import Stream as Stream
from torch.cuda.streams import StreamContext as StreamContext
from torch.cuda.streams import current_stream as current_stream
from torch.cuda.streams import default_stream as default_stream
from torch.cuda.streams import get_stream_from_external as get_stream_from_external
from torch.cuda.streams import set_stream as set_stream
from torch.cuda.streams import stream as stream
from torch.cuda.streams import synchronize as synchronize
from torch.storage import TypedStorage as _base_TypedStorage

class BFloat16Storage(_base_TypedStorage):
    dtype: _Any
class BFloat16Tensor:
    device_name: _Any
    dtype_name: _Any
class BoolStorage(_base_TypedStorage):
    dtype: _Any
class BoolTensor:
    device_name: _Any
    dtype_name: _Any
class ByteStorage(_base_TypedStorage):
    dtype: _Any
class ByteTensor:
    device_name: _Any
    dtype_name: _Any
class CharStorage(_base_TypedStorage):
    dtype: _Any
class CharTensor:
    device_name: _Any
    dtype_name: _Any
class ComplexDoubleStorage(_base_TypedStorage):
    dtype: _Any
class ComplexDoubleTensor:
    device_name: _Any
    dtype_name: _Any
class ComplexFloatStorage(_base_TypedStorage):
    dtype: _Any
class ComplexFloatTensor:
    device_name: _Any
    dtype_name: _Any
class CudaError(_builtins.RuntimeError):
    def __init__(self, code: _int) -> None: ...
class DeferredCudaCallError(_builtins.Exception):
    ...
class DoubleStorage(_base_TypedStorage):
    dtype: _Any
class DoubleTensor:
    device_name: _Any
    dtype_name: _Any
class FloatStorage(_base_TypedStorage):
    dtype: _Any
class FloatTensor:
    device_name: _Any
    dtype_name: _Any
class HalfStorage(_base_TypedStorage):
    dtype: _Any
class HalfTensor:
    device_name: _Any
    dtype_name: _Any
class IntStorage(_base_TypedStorage):
    dtype: _Any
class IntTensor:
    device_name: _Any
    dtype_name: _Any
class LongStorage(_base_TypedStorage):
    dtype: _Any
class LongTensor:
    device_name: _Any
    dtype_name: _Any
class ShortStorage(_base_TypedStorage):
    dtype: _Any
class ShortTensor:
    device_name: _Any
    dtype_name: _Any
class UInt16Storage(_base_TypedStorage):
    dtype: _Any
class UInt32Storage(_base_TypedStorage):
    dtype: _Any
class UInt64Storage(_base_TypedStorage):
    dtype: _Any
def can_device_access_peer(device, peer_device) -> _bool: ...
def check_error(res: _int) -> None: ...
def clock_rate(*args, **kwargs) -> _Any: ...
class cudaStatus:
    ERROR_NOT_READY: _Any
    SUCCESS: _Any
def cudart() -> _Any: ...
def current_blas_handle() -> _int: ...
def current_device() -> _int: ...
def current_solver_handle() -> _int: ...
default_generators: _Any
class device:
    idx: _Any
    prev_idx: _Any
    def __enter__(self) -> _Any: ...
    def __exit__(self, *exc) -> _Any: ...
    def __init__(self, device) -> None: ...
class device_of:
    idx: _Any
    prev_idx: _Any
    def __enter__(self) -> _Any: ...
    def __exit__(self, *exc) -> _Any: ...
    def __init__(self, obj) -> None: ...
def get_arch_list() -> _Any: ...
def get_device_capability(device=...) -> _Any: ...
def get_device_name(device=...) -> _str: ...
def get_device_properties(device=...) -> _Any: ...
def get_gencode_flags() -> _str: ...
def get_sync_debug_mode() -> _int: ...
has_half: _builtins.bool
has_magma: _builtins.bool
def init() -> None: ...
def ipc_collect() -> None: ...
def is_bf16_supported(including_emulation: _bool = ...) -> _bool: ...
def is_initialized() -> _bool: ...
def is_tf32_supported() -> _bool: ...
def make_types(device_name: _str) -> _Any: ...
def memory_usage(*args, **kwargs) -> _Any: ...
def power_draw(*args, **kwargs) -> _Any: ...
def set_device(device) -> None: ...
def set_sync_debug_mode(debug_mode) -> None: ...
def temperature(*args, **kwargs) -> _Any: ...
def utilization(device=...) -> _int: ...
