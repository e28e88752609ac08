"""The accelerator: the MindSpore device that torch.cuda and torch.npu refer to.

On a machine without an NPU the CPU takes its place if MSADAPTER_DEVICE asks for it. Device objects keep the
name that the user wrote, and work is done synchronously. Each process of a job sees as many devices as the
job has processes on this machine (LOCAL_WORLD_SIZE), so that set_device(local_rank) works.

With NPUs, a process sees all of the machine's and uses one of them: MindSpore drives one NPU in a process.
"""

import functools
import os
import threading

from . import runtime
from .troubleshooting import see

_names = ("cuda", "npu")
_local = threading.local()


def _asked() -> str:
    """The type of device that MSADAPTER_DEVICE names, without an index; empty if it names none."""
    return os.environ.get("MSADAPTER_DEVICE", "").partition(":")[0].lower()


def kind() -> str | None:
    """'cuda' or 'npu', the name under which the run asked for the accelerator, or None if there is none.

    An NPU is called npu unless MSADAPTER_DEVICE names it otherwise. With MSADAPTER_DEVICE=cpu it is not used.
    """
    asked = _asked()
    if asked in _names:
        return asked
    return "npu" if asked == "ascend" or (not asked and not on_host()) else None


def is_available() -> bool:
    """Return whether torch.cuda and torch.npu are available in this run."""
    return kind() is not None


@functools.cache
def on_host() -> bool:
    """Return whether the accelerator is the CPU, because MindSpore drives no other device in this process."""
    runtime.native()
    return runtime.device_target() == "CPU"


def npu_runtime():
    """Return MindSpore's module of streams, events and memory statistics, or None if the accelerator is the host."""
    if on_host():
        return None
    import mindspore  # late: MindSpore's package is loaded with an accelerator only

    return mindspore.runtime


def device_count() -> int:
    """Return the number of devices that this process can use."""
    if not is_available():
        return 0
    if not on_host():
        import mindspore  # late: MindSpore's package is loaded with an accelerator only

        return mindspore.hal.device_count("Ascend")
    visible = os.environ.get("MSADAPTER_DEVICE_COUNT") or os.environ.get("LOCAL_WORLD_SIZE")
    return max(1, int(visible)) if visible else 1


def current_device() -> int:
    """Return the index of the current device: of this thread, or with NPUs that of the process."""
    return getattr(_local, "index", 0) if on_host() else runtime.device_id()


def set_device(index: int) -> None:
    """Make device `index` the current one. Negative numbers do nothing.

    Raises:
        RuntimeError: there is no such device.
        NotImplementedError: this process already uses another NPU.
    """
    if index < 0:
        return
    check_index(index)
    if on_host():
        _local.index = index
    elif index != current_device():
        _use_npu(index)


def _use_npu(index: int) -> None:
    import mindspore  # late: MindSpore's package is loaded with an accelerator only

    try:
        mindspore.set_device("Ascend", index)
    except RuntimeError as error:
        raise NotImplementedError(
            f"torch.npu.set_device({index}): this process has started to use NPU {current_device()}, and MindSpore "
            "drives one NPU in a process. Call set_device before the first tensor is created (docs/ascend.md)"
        ) from error


def check_index(index: int) -> None:
    require()
    if index >= device_count():
        raise RuntimeError(
            f"CUDA error: invalid device ordinal ({index}, but this process has {device_count()} device(s)"
            + ("; MSADAPTER_DEVICE_COUNT sets their number) " if on_host() else ") ")
            + see("device-ordinal")
        )


def require() -> None:
    """Raise RuntimeError if there is no accelerator in this run."""
    if not is_available():
        raise RuntimeError(
            "Found no NVIDIA driver or NPU on your system: set MSADAPTER_DEVICE=cuda (or npu), source build/env.sh or start "
            f"with `python -m msadapter` to use the accelerator {see('no-accelerator')}"
        )


def index_of(device=None) -> int:
    """Return the index of a device, given as int, 'cuda:1', torch.device or None (the current device)."""
    if device is None:
        return current_device()
    if isinstance(device, int):
        return current_device() if device < 0 else device
    text = str(device)
    name, _, number = text.partition(":")
    if name not in (*_names, "privateuseone"):
        raise ValueError(f"Expected a cuda device, but got: {text}")
    return int(number) if number else current_device()


class Device:
    """Makes another device the current one inside a ``with`` block (torch.cuda.device)."""

    def __init__(self, device):
        self.idx = -1 if device is None else index_of(device)
        self.prev_idx = -1

    def __enter__(self):
        self.prev_idx = current_device()
        set_device(self.idx)

    def __exit__(self, *exc):
        set_device(self.prev_idx)
        return False


class DeviceOf(Device):
    """Makes the device of a tensor the current one inside a ``with`` block. A CPU tensor changes nothing."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.device.type != "cpu" else None)
