"""The accelerator: the MindSpore device that torch.cuda and torch.npu refer to.

On a machine without an NPU the CPU takes its place if MSADAPTER_DEVICE asks for it. Device objects keep the
name that the user wrote, and work is done synchronously. Each process of a job sees as many devices as the
job has processes on this machine (LOCAL_WORLD_SIZE), so that set_device(local_rank) works.
"""

import os
import threading

_names = ("cuda", "npu")
_local = threading.local()


def _asked() -> str:
    """The type of device that MSADAPTER_DEVICE names, without an index; empty if it names none."""
    return os.environ.get("MSADAPTER_DEVICE", "").partition(":")[0].lower()


def kind() -> str | None:
    """'cuda' or 'npu', the name under which the run asked for the accelerator ('ascend' is 'npu' on a real device), or None."""
    asked = _asked()
    if asked in _names:
        return asked
    return "npu" if asked == "ascend" else None


def is_available() -> bool:
    """Return whether torch.cuda and torch.npu are available in this run."""
    return kind() is not None


def on_host() -> bool:
    """Return whether the accelerator is the CPU."""
    return _asked() != "ascend"


def device_count() -> int:
    """Return the number of devices that this process can use."""
    if not is_available():
        return 0
    visible = os.environ.get("MSADAPTER_DEVICE_COUNT") or os.environ.get("LOCAL_WORLD_SIZE")
    return max(1, int(visible)) if visible else 1


def current_device() -> int:
    """Return the index of the current device of this thread."""
    return getattr(_local, "index", 0)


def set_device(index: int) -> None:
    """Make device `index` the current one. RuntimeError if it does not exist; negative numbers do nothing."""
    if index < 0:
        return
    check_index(index)
    _local.index = index


def check_index(index: int) -> None:
    require()
    if index >= device_count():
        raise RuntimeError(
            f"CUDA error: invalid device ordinal ({index}, but this process has "
            f"{device_count()} "
            "device(s); MSADAPTER_DEVICE_COUNT sets their number)"
        )


def require() -> None:
    """Raise RuntimeError if there is no accelerator in this run."""
    if not is_available():
        raise RuntimeError(
            "Found no NVIDIA driver or NPU on your system: set MSADAPTER_DEVICE=cuda (or "
            "npu), source "
            "build/env.sh or start with `python -m msadapter` to use the accelerator"
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
