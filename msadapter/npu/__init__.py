"""torch.npu: the same device under the name that torch_npu uses."""

from .. import cuda as _cuda
from .._host import accelerator as _accelerator
from .._host import extensions as _extensions
from .._host.accelerator import current_device, device_count, is_available
from .._host.native import load
from ..cuda import *  # noqa: F403
from ..cuda import (
    Event,
    Stream,
    StreamContext,
    _get_device_index,
    _lazy_call,
    _lazy_init,
    amp,
    current_stream,
    default_generators,
    default_stream,
    empty_cache,
    get_device_name,
    get_device_properties,
    init,
    is_bf16_supported,
    is_initialized,
    manual_seed,
    manual_seed_all,
    max_memory_allocated,
    max_memory_reserved,
    mem_get_info,
    memory,
    memory_allocated,
    memory_reserved,
    memory_stats,
    random,
    reset_peak_memory_stats,
    set_device,
    set_stream,
    stream,
    streams,
    synchronize,
)
from ..cuda._tensor_types import make_types
from ..cuda.random import (
    get_rng_state,
    get_rng_state_all,
    initial_seed,
    seed,
    set_rng_state,
    set_rng_state_all,
)
from ..tensor.typed_storage import legacy_storages as _legacy_storages
from . import mstx

globals().update(make_types("npu"))
globals().update(_legacy_storages("torch.npu", "npu"))
device = _cuda.device
_options: dict = {}


def set_compile_mode(jit_compile: bool = False) -> None:
    """Stores the mode. On the host it has no effect, because operators are not compiled at run time."""
    _options["jitCompile"] = bool(jit_compile)


def is_jit_compile_false() -> bool:
    """True if the mode of set_compile_mode is jit_compile=False."""
    return not _options.get("jitCompile", False)


def set_option(option: dict) -> None:
    """Stores options of the device's runtime."""
    if not isinstance(option, dict):
        raise TypeError("npu option must be a dict")
    _options.update(option)


class config:
    """The options of torch_npu that programs set."""

    allow_internal_format = False


def get_device_capability(device=None):
    """Returns None, as torch_npu does, because NPUs have no compute capability."""
    return


def _on_host_only(name: str) -> None:
    if not _accelerator.on_host():
        raise NotImplementedError(f"torch.npu.{name} is not supported on a device (docs/coverage.md)")


def stop_device(device_id) -> int:
    """Drops the work that the device has not done yet, and returns 0. Later operators on it are errors.

    Collectives and messages that this process waits for fail with FORCE STOP, and so do later ones of the same process groups,
    until torch.distributed.reinit_process_group has made these usable again. On the host nothing else is pending after a call.
    """
    if (abort := _extensions.abort_communication.value) is not None:
        abort("torch.npu.stop_device")
    if not _accelerator.on_host():
        # late: MindSpore's package is loaded with an accelerator only
        from mindspore._c_expression import _stop_device

        _accelerator.check_index(device_id)
        load().set_device_stopped(True)
        _stop_device(device_id)
    return 0


def restart_device(device_id, rebuild_all_resources=False) -> None:
    """Lets operators run on the device again, after stop_device or a fault. Tensors keep their memory.

    rebuild_all_resources: without effect, as in torch_npu.
    """
    if not _accelerator.on_host():
        # late: MindSpore's package is loaded with an accelerator only
        from mindspore._c_expression import _repair_device, _reset_error_state

        _accelerator.check_index(device_id)
        _repair_device(device_id)
        _reset_error_state()
        load().set_device_stopped(False)


def check_uce_in_memory(device_id) -> int:
    """What uncorrectable errors have done to the memory: 2 if no tensor is hit, 3 if some are. On the host it is 0, none."""
    _on_host_only("check_uce_in_memory")
    return 0


def __getattr__(name):
    return getattr(_cuda, name)
