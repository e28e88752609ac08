"""torch.utils.cpp_extension: extensions with PyTorch's C++ API. It does not exist here, so building one raises an error.

CUDA_HOME is a folder with a program `nvcc` that prints a version, because build scripts ask for it.
"""

import os
import sys

from .._errors import unsupported, unsupported_function

__all__ = [
    "BuildExtension",
    "CUDAExtension",
    "CUDA_HOME",
    "CppExtension",
    "include_paths",
    "load",
    "load_inline",
]

# Upstream scripts run $CUDA_HOME/bin/nvcc -V before they decide what to build: ours answers and compiles nothing.
CUDA_HOME = (
    os.environ.get("CUDA_HOME")
    or os.environ.get("CUDA_PATH")
    or os.path.join(os.path.dirname(__file__), "toolkit")
)
ROCM_HOME = None
IS_HIP_EXTENSION = False


CppExtension, CUDAExtension, SyclExtension, load, load_inline, include_paths, library_paths = (
    unsupported_function(
        f"torch.utils.cpp_extension.{name}",
        "extensions in PyTorch's C++ API are not supported",
        f"{name} would compile against PyTorch's C++ API.",
    )
    for name in (
        "CppExtension",
        "CUDAExtension",
        "SyclExtension",
        "load",
        "load_inline",
        "include_paths",
        "library_paths",
    )
)


def _get_build_directory(name: str, verbose: bool) -> str:
    """Create and return the folder in which PyTorch would build the extension `name`."""
    root = os.environ.get("TORCH_EXTENSIONS_DIR")
    if root is None:
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        root = os.path.join(cache, "torch_extensions", f"py{sys.version_info[0]}{sys.version_info[1]}_cpu")
    folder = os.path.join(root, name)
    os.makedirs(folder, exist_ok=True)
    return folder


class BuildExtension:
    """The setuptools command that builds extensions."""

    def __init__(self, *args, **kwargs):
        raise unsupported(
            "torch.utils.cpp_extension.BuildExtension", "extensions in PyTorch's C++ API are not supported"
        )

    @classmethod
    def with_options(cls, **options):
        """Return a subclass of the command with these options."""
        return cls
