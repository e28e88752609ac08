# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from torch import AcceleratorError as AcceleratorError
from torch import OutOfMemoryError as OutOfMemoryError
from torch.accelerator import device_count as device_count
from torch.accelerator import is_available as is_available
from torch.cuda import BFloat16Storage as BFloat16Storage
from torch.cuda import BFloat16Tensor as BFloat16Tensor
from torch.cuda import BoolStorage as BoolStorage
from torch.cuda import BoolTensor as BoolTensor
from torch.cuda import ByteStorage as ByteStorage
from torch.cuda import ByteTensor as ByteTensor
from torch.cuda import CharStorage as CharStorage
from torch.cuda import CharTensor as CharTensor
from torch.cuda import ComplexDoubleStorage as ComplexDoubleStorage
from torch.cuda import ComplexDoubleTensor as ComplexDoubleTensor
from torch.cuda import ComplexFloatStorage as ComplexFloatStorage
from torch.cuda import ComplexFloatTensor as ComplexFloatTensor
from torch.cuda import CudaError as CudaError
from torch.cuda import DeferredCudaCallError as DeferredCudaCallError
from torch.cuda import DoubleStorage as DoubleStorage
from torch.cuda import DoubleTensor as DoubleTensor
from torch.cuda import FloatStorage as FloatStorage
from torch.cuda import FloatTensor as FloatTensor
from torch.cuda import HalfStorage as HalfStorage
from torch.cuda import HalfTensor as HalfTensor
from torch.cuda import IntStorage as IntStorage
from torch.cuda import IntTensor as IntTensor
from torch.cuda import LongStorage as LongStorage
from torch.cuda import LongTensor as LongTensor
from torch.cuda import ShortStorage as ShortStorage
from torch.cuda import ShortTensor as ShortTensor
from torch.cuda import UInt16Storage as UInt16Storage
from torch.cuda import UInt32Storage as UInt32Storage
from torch.cuda import UInt64Storage as UInt64Storage
from torch.cuda import can_device_access_peer as can_device_access_peer
from torch.cuda import check_error as check_error
from torch.cuda import clock_rate as clock_rate
from torch.cuda import cudaStatus as cudaStatus
from torch.cuda import cudart as cudart
from torch.cuda import current_blas_handle as current_blas_handle
from torch.cuda import current_device as current_device
from torch.cuda import current_solver_handle as current_solver_handle
from torch.cuda import get_arch_list as get_arch_list
from torch.cuda import get_device_capability as get_device_capability
from torch.cuda import get_device_name as get_device_name
from torch.cuda import get_device_properties as get_device_properties
from torch.cuda import get_gencode_flags as get_gencode_flags
from torch.cuda import get_sync_debug_mode as get_sync_debug_mode
from torch.cuda import init as init
from torch.cuda import ipc_collect as ipc_collect
from torch.cuda import is_bf16_supported as is_bf16_supported
from torch.cuda import is_initialized as is_initialized
from torch.cuda import is_tf32_supported as is_tf32_supported
from torch.cuda import make_types as make_types
from torch.cuda import memory_usage as memory_usage
from torch.cuda import power_draw as power_draw
from torch.cuda import set_device as set_device
from torch.cuda import set_sync_debug_mode as set_sync_debug_mode
from torch.cuda import temperature as temperature
from torch.cuda import utilization as utilization
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
has_half: _builtins.bool
has_magma: _builtins.bool
