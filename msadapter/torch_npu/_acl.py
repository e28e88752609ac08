"""`acl`, the Python module of CANN, for machines without CANN. It has the functions that programs use."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

from .. import npu


def get_soc_name() -> str:
    """Return the name of the device."""
    return npu.get_device_name()


def get_mem_info(attribute: int) -> tuple[int, int, int]:
    """Return (free bytes, total bytes, 0) of the device memory."""
    free, total = npu.mem_get_info()
    return free, total, 0


def provide() -> None:
    """Make `import acl` return this module, unless CANN's own module exists or is imported already."""
    if "acl" in sys.modules or importlib.util.find_spec("acl") is not None:
        return
    runtime = ModuleType("acl.rt", "acl.rt of msadapter.")
    runtime.get_mem_info = get_mem_info  # type: ignore[attr-defined]
    module = ModuleType("acl", "acl of msadapter: CANN is not installed.")
    module.get_soc_name, module.rt = get_soc_name, runtime  # type: ignore[attr-defined]
    sys.modules["acl"], sys.modules["acl.rt"] = module, runtime
