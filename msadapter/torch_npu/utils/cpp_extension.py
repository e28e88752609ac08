"""torch_npu.utils.cpp_extension: extensions in C++ for the device, which need PyTorch's headers."""

from __future__ import annotations


def NpuExtension(name, sources, *args, **kwargs):
    """NotImplementedError: there are no headers of PyTorch to compile against."""
    raise NotImplementedError(
        f"torch_npu.utils.cpp_extension.NpuExtension: compiling {name} against PyTorch's headers is not supported "
        "(docs/coverage.md)"
    )
