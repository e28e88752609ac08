# Written by python -m tests.stubs.make_stubs; do not edit.
import builtins as _builtins
from torch._stub_types import *
from typing import NamedTuple as _NamedTuple

class SystemEnv(_NamedTuple):
    torch_version: _Any
    is_debug_build: _Any
    cuda_compiled_version: _Any
    gcc_version: _Any
    clang_version: _Any
    cmake_version: _Any
    os: _Any
    libc_version: _Any
    python_version: _Any
    python_platform: _Any
    is_cuda_available: _Any
    cuda_runtime_version: _Any
    cuda_module_loading: _Any
    nvidia_driver_version: _Any
    nvidia_gpu_models: _Any
    cudnn_version: _Any
    is_xpu_available: _Any
    pip_version: _Any
    pip_packages: _Any
    conda_packages: _Any
    hip_compiled_version: _Any
    hip_runtime_version: _Any
    miopen_runtime_version: _Any
    caching_allocator_config: _Any
    is_xnnpack_available: _Any
    cpu_info: _Any
TORCH_VERSION: _builtins.str
def get_env_info() -> _Any: ...
def get_pip_packages() -> _str: ...
def get_pretty_env_info() -> _str: ...
def main() -> None: ...
def pretty_str(envinfo) -> _str: ...
