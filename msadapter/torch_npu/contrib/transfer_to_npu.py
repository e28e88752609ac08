"""Importing this module renames "cuda" to "npu" and "nccl" to "hccl" in the program, and `Tensor.is_cuda` is `Tensor.is_npu`.

Both names mean the same accelerator here anyway. Only the names that programs compare and print change.
"""

from __future__ import annotations

import functools
import os

from ... import distributed, npu
from ..._host import accelerator as _accelerator
from ..._values.device import device as _device
from ...tensor import Tensor as _Tensor


def _rename_devices() -> None:
    plain = _device.__init__
    if hasattr(plain, "__wrapped__"):
        return

    @functools.wraps(plain)
    def renamed(self, type="cpu", index=None):
        if isinstance(type, str) and type.partition(":")[0] == "cuda":
            type = "npu" + type[4:]
        plain(self, type, index)

    _device.__init__ = renamed


def _rename_backends() -> None:
    plain = distributed.init_process_group
    if hasattr(plain, "__wrapped__"):
        return

    @functools.wraps(plain)
    def renamed(backend=None, *args, **kwargs):
        if isinstance(backend, str):
            backend = backend.replace("nccl", "hccl").replace("cuda", "npu")
        return plain(backend, *args, **kwargs)

    distributed.init_process_group = renamed


if _accelerator.kind() == "cuda":
    os.environ["MSADAPTER_DEVICE"] = "npu"
_rename_devices()
_rename_backends()
_Tensor.is_cuda = _Tensor.is_npu

__all__ = ["npu"]
