"""torch_npu.utils.cpp_extension: C++ extensions for the NPU.

Not supported, because they need PyTorch's headers.
"""

from __future__ import annotations

from ..._errors import unsupported


def NpuExtension(name, sources, *args, **kwargs):
    """Not supported: raises NotImplementedError, because there are no headers of PyTorch."""
    raise unsupported(
        "torch_npu.utils.cpp_extension.NpuExtension",
        f"compiling {name} against PyTorch's headers is not supported",
    )
