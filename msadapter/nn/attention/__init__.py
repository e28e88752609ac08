"""Selection of the kernel for scaled dot product attention."""

from __future__ import annotations

import contextlib
from enum import IntEnum

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(IntEnum):
    """The kernels that PyTorch can choose from.

    Here every choice runs the same kernel, the one of the device.
    """

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_enabled = [
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.CUDNN_ATTENTION,
]


def _cur_sdpa_kernel_backends(with_priority=False):
    """Return the list of the kernels that are allowed now."""
    return list(_enabled)


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Allow only ``backends`` (one SDPBackend or a list of them) inside the ``with`` block.

    PyTorch's kernels differ in speed and rounding only, and each device has a single kernel here. The choice
    is therefore recorded and can be read back, but it does not change what runs.
    """
    global _enabled
    if isinstance(backends, SDPBackend):
        backends = [backends]
    if not isinstance(backends, list):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    before = _enabled
    _enabled = list(dict.fromkeys(backends))
    try:
        yield {}
    finally:
        _enabled = before
