"""torch_npu.utils: thread affinity, flat tensors and other tools."""

import os

from ...ops import cat
from . import collect_env, cpp_extension, flops_count


def register_asd_hook(x, weight) -> None:
    """Does nothing on a CPU. On an NPU it watches for silent errors of the arithmetic."""


def set_thread_affinity(core_range=None) -> None:
    """Bind this thread to the processors in the range [first, last]. None changes nothing."""
    if core_range is not None:
        os.sched_setaffinity(0, range(core_range[0], core_range[1] + 1))


def reset_thread_affinity() -> None:
    """Allow this thread to run on every processor of the machine again."""
    os.sched_setaffinity(0, range(os.cpu_count() or 1))


def npu_combine_tensors(list_of_tensor, require_copy_value=True):
    """Return one flat tensor, and make the given tensors views of its parts."""
    flat = cat([one.detach().reshape(-1) for one in list_of_tensor])
    if not require_copy_value:
        flat.zero_()
    place = 0
    for one in list_of_tensor:
        one.data = flat[place : place + one.numel()].view(one.shape)
        place += one.numel()
    return flat


__all__ = [
    "collect_env",
    "flops_count",
    "npu_combine_tensors",
    "register_asd_hook",
    "reset_thread_affinity",
    "set_thread_affinity",
]
