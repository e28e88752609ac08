"""The one accelerator: MindSpore's device, seen as torch.cuda and torch.npu.

On a machine without an NPU the accelerator is the host itself, when the run asks for it (MSADAPTER_DEVICE):
device objects keep the name that the user wrote, work is done at once and in order. Each process of a job
sees as many devices as the job has processes here (LOCAL_WORLD_SIZE), so that set_device(local_rank) works.
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
    """Whether torch.cuda and torch.npu answer in this run."""
    return kind() is not None


def on_host() -> bool:
    """Whether the accelerator is the host's memory and processor."""
    return _asked() != "ascend"


def device_count() -> int:
    """Number of devices that this process may name."""
    if not is_available():
        return 0
    visible = os.environ.get("MSADAPTER_DEVICE_COUNT") or os.environ.get("LOCAL_WORLD_SIZE")
    return max(1, int(visible)) if visible else 1


def current_device() -> int:
    """Index of the current device of this thread."""
    return getattr(_local, "index", 0)


def set_device(index: int) -> None:
    """Make `index` current; RuntimeError if there is no such device, negative numbers do nothing."""
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
    """RuntimeError if there is no accelerator in this run."""
    if not is_available():
        raise RuntimeError(
            "Found no NVIDIA driver or NPU on your system: set MSADAPTER_DEVICE=cuda (or "
            "npu), source "
            "build/env.sh or start with `python -m msadapter` to use the accelerator"
        )


def index_of(device=None) -> int:
    """Index of a device given as int, 'cuda:1', torch.device or None (the current one)."""
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
    """Context manager: another current device for a block (torch.cuda.device)."""

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
    """Context manager: the device of a tensor is current; a tensor on the host changes nothing."""

    def __init__(self, obj):
        super().__init__(obj.get_device() if obj.device.type != "cpu" else None)
