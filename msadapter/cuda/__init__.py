"""torch.cuda: the API of MindSpore's accelerator. _host.accelerator determines which device that is."""

import time as _time

from .._errors import AcceleratorError, OutOfMemoryError
from .._host import accelerator as _accelerator
from .._host.accelerator import current_device, device_count, is_available
from ..tensor.typed_storage import legacy_storages as _legacy_storages
from . import amp, graphs, memory, nccl, nvtx, profiler, random, streams, tunable
from ._tensor_types import make_types
from ._utils import _get_device_index
from .graphs import CUDAGraph, graph, graph_pool_handle, is_current_stream_capturing, make_graphed_callables
from .memory import (
    CUDAPluggableAllocator,
    MemPool,
    caching_allocator_alloc,
    caching_allocator_delete,
    caching_allocator_enable,
    change_current_allocator,
    device_memory_used,
    empty_cache,
    get_allocator_backend,
    get_per_process_memory_fraction,
    host_memory_stats,
    host_memory_stats_as_nested_dict,
    list_gpu_processes,
    max_memory_allocated,
    max_memory_cached,
    max_memory_reserved,
    mem_get_info,
    memory_allocated,
    memory_cached,
    memory_reserved,
    memory_snapshot,
    memory_stats,
    memory_stats_as_nested_dict,
    memory_summary,
    reset_accumulated_host_memory_stats,
    reset_accumulated_memory_stats,
    reset_max_memory_allocated,
    reset_max_memory_cached,
    reset_peak_host_memory_stats,
    reset_peak_memory_stats,
    set_per_process_memory_fraction,
    use_mem_pool,
)
from .properties import (
    _CudaDeviceProperties,
    can_device_access_peer,
    clock_rate,
    get_arch_list,
    get_device_capability,
    get_device_name,
    get_device_properties,
    get_gencode_flags,
    is_bf16_supported,
    memory_usage,
    power_draw,
    temperature,
    utilization,
)
from .random import (
    default_generators,
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    manual_seed,
    manual_seed_all,
    seed,
    seed_all,
    set_rng_state,
    set_rng_state_all,
)
from .streams import (
    Event,
    ExternalStream,
    Stream,
    StreamContext,
    current_stream,
    default_stream,
    get_stream_from_external,
    set_stream,
    stream,
    synchronize,
)

globals().update(make_types("cuda"))
globals().update(_legacy_storages("torch.cuda", "cuda"))

device, device_of = _accelerator.Device, _accelerator.DeviceOf
has_magma = False
has_half = True
_sync_mode = [0]


class CudaError(RuntimeError):
    """An error code of the device's runtime."""

    def __init__(self, code: int):
        super().__init__(f"CUDA error: code {code}")


class DeferredCudaCallError(Exception):
    """An error in a call that _lazy_call has delayed."""


def init() -> None:
    """Initialises the device. Raises RuntimeError if there is none."""
    _accelerator.require()


def is_initialized() -> bool:
    """Returns whether the device is initialised, which it is whenever it is available."""
    return is_available() and not _is_in_bad_fork()


def _lazy_init() -> None:
    init()


def _lazy_call(callable, **kwargs) -> None:
    """Calls the function now. Without an accelerator, it is never called."""
    if is_available():
        callable()


def _is_in_bad_fork() -> bool:
    return False


def _is_compiled() -> bool:
    return is_available()


def _exchange_device(index: int) -> int:
    """Makes device `index` current and returns the previous one. -1 changes nothing."""
    before = current_device()
    _accelerator.set_device(index)
    return before


_maybe_exchange_device = _exchange_device


def set_device(device) -> None:
    """Makes a device current. It is a torch.device, a string such as 'cuda:0', or an index."""
    _accelerator.set_device(-1 if isinstance(device, int) and device < 0 else _accelerator.index_of(device))


def ipc_collect() -> None:
    """Does nothing, because no memory is shared with other processes."""


def get_sync_debug_mode() -> int:
    """The mode of set_sync_debug_mode."""
    return _sync_mode[0]


def set_sync_debug_mode(debug_mode) -> None:
    """Stores the mode (0, 1, 2 or 'default', 'warn', 'error'), which has no effect."""
    modes = {"default": 0, "warn": 1, "error": 2}
    mode = modes.get(debug_mode, debug_mode)
    if mode not in (0, 1, 2):
        raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
    _sync_mode[0] = mode


class cudaStatus:
    """Error codes."""

    SUCCESS = 0
    ERROR_NOT_READY = 34


class _Runtime:
    """The functions of the CUDA runtime that programs use."""

    cudaError = cudaStatus

    @staticmethod
    def cudaProfilerStart() -> int:
        return profiler.start()

    @staticmethod
    def cudaProfilerStop() -> int:
        return profiler.stop()

    @staticmethod
    def cudaMemGetInfo(device=None) -> tuple:
        return mem_get_info(device)

    @staticmethod
    def cudaHostRegister(pointer, size, flags) -> int:
        return cudaStatus.SUCCESS

    @staticmethod
    def cudaHostUnregister(pointer) -> int:
        return cudaStatus.SUCCESS

    @staticmethod
    def cudaGetErrorString(code) -> str:
        return f"CUDA error: code {int(code)}"


def cudart() -> _Runtime:
    """The runtime of the device."""
    return _Runtime()


def check_error(res: int) -> None:
    """Raises CudaError unless `res` is the code for success."""
    if int(res) != cudaStatus.SUCCESS:
        raise CudaError(res)


def current_blas_handle() -> int:
    """The handle of the BLAS library. oneDNN has no handles."""
    return 0


def _sleep(cycles: int) -> None:
    """Keeps the device busy for about `cycles` clock cycles."""
    _time.sleep(cycles / 1e9)


def current_solver_handle() -> int:
    """The handle of the linear algebra library. LAPACK has no handles."""
    return 0


def is_tf32_supported() -> bool:
    """Returns False, because float32 products are never computed in TF32."""
    return False
