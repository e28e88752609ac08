"""Properties of the accelerator."""

import os
import platform

from .._errors import unsupported_function
from .._host import accelerator as _accelerator
from .memory import mem_get_info

# the CUDA generation that matches the supported features: bfloat16, but no float8 matmul
_CAPABILITY = (8, 0)


class _CudaDeviceProperties:
    """The properties of a device. Those that no NPU has are those of the host."""

    def __init__(self, index: int):
        self.name = get_device_name(index)
        self.major, self.minor = _CAPABILITY
        self.total_memory = mem_get_info(index)[1]
        self.multi_processor_count = os.cpu_count()
        self.warp_size = 32
        self.max_threads_per_multi_processor = 2048
        self.regs_per_multiprocessor = 65536
        self.shared_memory_per_block = 48 * 1024
        self.shared_memory_per_multiprocessor = 164 * 1024
        self.L2_cache_size = 0
        self.is_integrated = 1
        self.is_multi_gpu_board = 0
        self.gcnArchName = ""
        self.uuid = "00000000-0000-0000-0000-000000000000"

    def __repr__(self):
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // 2**20}MB, "
            f"multi_processor_count={self.multi_processor_count})"
        )


def get_device_name(device=None) -> str:
    """The device's name. On the host it is the processor's name, or MSADAPTER_DEVICE_NAME if it is set."""
    if not _accelerator.on_host():
        import mindspore  # late: MindSpore's package is loaded with an accelerator only

        return mindspore.hal.get_device_name(_accelerator.index_of(device))
    if os.environ.get("MSADAPTER_DEVICE_NAME"):
        return os.environ["MSADAPTER_DEVICE_NAME"]
    with open("/proc/cpuinfo") as stream:
        for line in stream:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def get_device_properties(device=None) -> _CudaDeviceProperties:
    """The device's name, memory, number of cores and other properties."""
    index = _accelerator.index_of(device)
    _accelerator.check_index(index)
    return _CudaDeviceProperties(index)


def get_device_capability(device=None) -> tuple:
    """The (major, minor) compute capability that matches the supported features."""
    _accelerator.check_index(_accelerator.index_of(device))
    return _CAPABILITY


def can_device_access_peer(device, peer_device) -> bool:
    """Whether one device can read the memory of another one."""
    for index in (device, peer_device):
        _accelerator.check_index(_accelerator.index_of(index))
    return _accelerator.index_of(device) != _accelerator.index_of(peer_device)


def get_arch_list() -> list:
    """Returns an empty list, because no kernels are compiled for CUDA architectures."""
    return []


def get_gencode_flags() -> str:
    """Returns no compiler flags, because there are no CUDA architectures."""
    return ""


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Returns True, because bfloat16 is supported."""
    return _accelerator.is_available()


temperature, power_draw, clock_rate, memory_usage = (
    unsupported_function(
        f"torch.cuda.{name}",
        "the device has no such sensor",
        f"The sensor {name} of the device: there is none.",
    )
    for name in ("temperature", "power_draw", "clock_rate", "memory_usage")
)


def utilization(device=None) -> int:
    """The load of the device in percent, computed from the machine's load average and number of cores."""
    return min(100, int(100 * os.getloadavg()[0] / os.cpu_count()))
