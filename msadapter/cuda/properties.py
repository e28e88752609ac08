"""What kind of device the accelerator is."""

import os
import platform

from .._host import accelerator as _accelerator
from .memory import mem_get_info

# the generation that the supported features match: bfloat16, no float8 matmul
_CAPABILITY = (8, 0)


class _CudaDeviceProperties:
    """Facts about one device."""

    def __init__(self):
        self.name = get_device_name()
        self.major, self.minor = _CAPABILITY
        self.total_memory = mem_get_info()[1]
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
    """Name of the device: on the host, of its processor, or what MSADAPTER_DEVICE_NAME says (programs compare it)."""
    if not _accelerator.on_host():
        import mindspore

        return mindspore.hal.get_device_name(_accelerator.index_of(device))
    if os.environ.get("MSADAPTER_DEVICE_NAME"):
        return os.environ["MSADAPTER_DEVICE_NAME"]
    with open("/proc/cpuinfo") as stream:
        for line in stream:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def get_device_properties(device=None) -> _CudaDeviceProperties:
    """Name, memory, number of cores and so on."""
    _accelerator.check_index(_accelerator.index_of(device))
    return _CudaDeviceProperties()


def get_device_capability(device=None) -> tuple:
    """(major, minor) of the generation whose features are offered."""
    _accelerator.check_index(_accelerator.index_of(device))
    return _CAPABILITY


def can_device_access_peer(device, peer_device) -> bool:
    """Whether one device reads the memory of another: both are the host."""
    for index in (device, peer_device):
        _accelerator.check_index(_accelerator.index_of(index))
    return _accelerator.index_of(device) != _accelerator.index_of(peer_device)


def get_arch_list() -> list:
    """Architectures that kernels were compiled for: none of CUDA's."""
    return []


def get_gencode_flags() -> str:
    """Compiler flags of those architectures."""
    return ""


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 works: yes."""
    return _accelerator.is_available()


def _no_sensor(name):
    def read(device=None) -> int:
        raise NotImplementedError(f"torch.cuda.{name}: the device has no such sensor (docs/coverage.md)")

    read.__name__ = name
    read.__doc__ = f"The sensor {name} of the device: there is none."
    return read


temperature, power_draw, clock_rate, memory_usage = map(
    _no_sensor, ("temperature", "power_draw", "clock_rate", "memory_usage")
)


def utilization(device=None) -> int:
    """Load of the device in percent: the machine's load average over its cores."""
    return min(100, int(100 * os.getloadavg()[0] / os.cpu_count()))
