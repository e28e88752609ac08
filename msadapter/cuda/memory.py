"""Memory statistics of the accelerator.

On an NPU they are those of MindSpore's memory pool, on the host those of the kernels' memory pool and of the process.
"""

import os
import re

from .._errors import unsupported
from .._host import accelerator as _accelerator
from .._host.native import load
from .._values.dtype import ALL

_PAGE = os.sysconf("SC_PAGE_SIZE")
_blocks: dict = {}  # address -> memory of caching_allocator_alloc
_limit = [1.0]


def _native():
    """The extension with the memory pool."""
    return load()


def _resident() -> int:
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * _PAGE


def _peak_resident() -> int:
    with open("/proc/self/status") as stream:
        found = re.search(r"VmHWM:\s+(\d+) kB", stream.read())
    return int(found.group(1)) * 1024 if found else _resident()


def _figures() -> dict:
    """Name -> (current, peak), in bytes."""
    runtime = _accelerator.npu_runtime()
    if runtime is not None:
        pool = runtime.memory_stats()
        used = (pool["total_allocated_memory"], pool["max_allocated_memory"])
        held = (pool["total_reserved_memory"], pool["max_reserved_memory"])
        return {
            "allocated_bytes": used,
            "active_bytes": used,
            "requested_bytes": used,
            "reserved_bytes": held,
        }
    pool = _native().memory_stats()
    used = (pool["allocated"], pool["peak"])
    held = (pool["reserved"], max(pool["reserved"], pool["peak"]))
    return {
        "allocated_bytes": used,
        "active_bytes": used,
        "requested_bytes": used,
        "reserved_bytes": held,
        "resident_bytes": (_resident(), _peak_resident()),
    }


def memory_stats(device=None) -> dict:
    """Name -> value, with names such as 'allocated_bytes.all.current' and 'allocated_bytes.all.peak'."""
    if not _accelerator.is_available():
        return {}
    result = {}
    for name, (now, peak) in _figures().items():
        for pool in ("all", "large_pool", "small_pool"):
            counted = (
                pool != "small_pool"
            )  # the pool does not distinguish sizes, so everything counts as large
            result[f"{name}.{pool}.current"] = now if counted else 0
            result[f"{name}.{pool}.peak"] = peak if counted else 0
            result[f"{name}.{pool}.allocated"] = peak if counted else 0
            result[f"{name}.{pool}.freed"] = max(peak - now, 0) if counted else 0
    for name in (
        "num_alloc_retries",
        "num_ooms",
        "num_sync_all_streams",
        "num_device_alloc",
        "num_device_free",
    ):
        result[name] = 0
    return result


def memory_stats_as_nested_dict(device=None) -> dict:
    """memory_stats as nested dictionaries."""
    nested = {}
    for key, value in memory_stats(device).items():
        *folders, last = key.split(".")
        place = nested
        for folder in folders:
            place = place.setdefault(folder, {})
        place[last] = value
    return nested


def memory_allocated(device=None) -> int:
    """The bytes that tensors occupy."""
    return _figures()["allocated_bytes"][0]


def max_memory_allocated(device=None) -> int:
    """Peak of memory_allocated since the start or reset_peak_memory_stats."""
    return _figures()["allocated_bytes"][1]


def memory_reserved(device=None) -> int:
    """Bytes held by the allocator."""
    return _figures()["reserved_bytes"][0]


def max_memory_reserved(device=None) -> int:
    """Peak of memory_reserved."""
    return _figures()["reserved_bytes"][1]


memory_cached, max_memory_cached = memory_reserved, max_memory_reserved


def reset_peak_memory_stats(device=None) -> None:
    """Resets the peaks to the current values."""
    runtime = _accelerator.npu_runtime()
    if runtime is not None:
        runtime.reset_peak_memory_stats()
        return
    _native().reset_peak()
    try:
        with open("/proc/self/clear_refs", "w") as stream:
            stream.write("5")  # Linux: set the peak of the resident size to its present value
    except PermissionError:
        return


def reset_accumulated_memory_stats(device=None) -> None:
    """Does nothing, because there are no accumulated counters."""


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def empty_cache() -> None:
    """Returns unused blocks of the pool to the system, or to the device."""
    runtime = _accelerator.npu_runtime()
    if runtime is not None:
        runtime.empty_cache()
    else:
        _native().release_cached()


def mem_get_info(device=None) -> tuple:
    """(free, total) bytes of the device's memory. On the host this is the machine's memory."""
    if _accelerator.npu_runtime() is not None:
        import mindspore  # late: MindSpore's package is loaded with an accelerator only

        found = mindspore.hal.get_device_properties(_accelerator.index_of(device))
        return found.free_memory, found.total_memory
    with open("/proc/meminfo") as stream:
        rows = dict(re.findall(r"(\w+):\s+(\d+)", stream.read()))
    return int(rows["MemAvailable"]) * 1024, int(rows["MemTotal"]) * 1024


def memory_summary(device=None, abbreviated=False) -> str:
    """The statistics as text."""
    lines = [
        f"{name:<20} {now / 2**20:>12.1f} MiB  peak {peak / 2**20:>12.1f} MiB"
        for name, (now, peak) in _figures().items()
        if name.endswith("bytes")
    ]
    return "\n".join(["memory summary", *lines])


def memory_snapshot(mempool_id=None) -> list:
    """The blocks of the allocator, which does not list them."""
    return []


def _snapshot(device=None) -> dict:
    return {"segments": memory_snapshot(), "device_traces": []}


def _record_memory_history(enabled="all", *args, **kwargs) -> None:
    if enabled is not None:
        raise unsupported("torch.cuda.memory._record_memory_history")


def _dump_snapshot(filename="dump_snapshot.pickle") -> None:
    raise unsupported("torch.cuda.memory._dump_snapshot")


def set_per_process_memory_fraction(fraction, device=None) -> None:
    """Stores the share of memory that this process may use. It is not enforced on the host."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    _limit[0] = float(fraction)


def get_allocator_backend() -> str:
    """Name of the allocator."""
    return "native"


def list_gpu_processes(device=None) -> str:
    """The processes that use the device. Only this process is known."""
    return f"process {os.getpid():>10d} uses {_resident() / 2**20:>12.3f} MB memory"


def host_memory_stats() -> dict:
    """The statistics of pinned memory, of which the host has none."""
    return {}


def host_memory_stats_as_nested_dict() -> dict:
    """host_memory_stats as nested dictionaries."""
    return {}


def reset_peak_host_memory_stats() -> None:
    """Does nothing, because the host has no pinned memory."""


reset_accumulated_host_memory_stats = reset_peak_host_memory_stats


def device_memory_used(device=None) -> int:
    """The bytes that all processes use."""
    free, total = mem_get_info(device)
    return total - free


def get_per_process_memory_fraction(device=None) -> float:
    """The value of set_per_process_memory_fraction, initially 1."""
    return _limit[0]


def caching_allocator_alloc(size: int, device=None, stream=None) -> int:
    """Allocates ``size`` bytes and returns their address. caching_allocator_delete frees them."""
    block = _native().raw_empty((int(size),), None, _dtype("uint8"))
    address = _native().data_ptr(block)
    _blocks[address] = block
    return address


def caching_allocator_delete(mem_ptr: int) -> None:
    """Frees memory of caching_allocator_alloc. Raises RuntimeError for any other address."""
    if _blocks.pop(mem_ptr, None) is None:
        raise RuntimeError(f"invalid device pointer: {mem_ptr}")


def caching_allocator_enable(value: bool = True) -> None:
    """Raises NotImplementedError for False, because the memory pool cannot be disabled."""
    if not value:
        raise _own_allocator("caching_allocator_enable(False)")


def _dtype(name: str):
    return ALL[name]


def _own_allocator(name: str) -> NotImplementedError:
    return unsupported(f"torch.cuda.memory.{name}", "memory that is not of the one pool is not supported")


class CUDAPluggableAllocator:
    """An allocator from a C++ library of the user. Not supported: raises NotImplementedError."""

    def __init__(self, path_to_so_file: str, alloc_fn_name: str, free_fn_name: str):
        raise _own_allocator(type(self).__name__)


def change_current_allocator(allocator) -> None:
    """Replaces the allocator. Not supported: raises NotImplementedError."""
    raise _own_allocator("change_current_allocator")


class MemPool:
    """A separate memory pool. Not supported: raises NotImplementedError."""

    def __init__(self, *args, **kwargs):
        raise _own_allocator("MemPool")


def use_mem_pool(pool, device=None):
    """A block that allocates from ``pool``. Not supported: raises NotImplementedError."""
    raise _own_allocator("use_mem_pool")


class NPUPluggableAllocator(CUDAPluggableAllocator):
    """The same under torch_npu's name."""
