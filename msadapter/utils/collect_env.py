"""torch.utils.collect_env: the facts that a bug report needs. They are those of `python -m msadapter doctor`.

python -m torch.utils.collect_env
"""

from __future__ import annotations

import os
import platform
import sys
from collections import namedtuple
from importlib import metadata

from .. import cuda
from .._host import doctor
from ..alias import TORCH_VERSION

# The fields that PyTorch's tuple has on every system. Facts that have no meaning here are None or "N/A".
SystemEnv = namedtuple(
    "SystemEnv",
    [
        "torch_version",
        "is_debug_build",
        "cuda_compiled_version",
        "gcc_version",
        "clang_version",
        "cmake_version",
        "os",
        "libc_version",
        "python_version",
        "python_platform",
        "is_cuda_available",
        "cuda_runtime_version",
        "cuda_module_loading",
        "nvidia_driver_version",
        "nvidia_gpu_models",
        "cudnn_version",
        "is_xpu_available",
        "pip_version",
        "pip_packages",
        "conda_packages",
        "hip_compiled_version",
        "hip_runtime_version",
        "miopen_runtime_version",
        "caching_allocator_config",
        "is_xnnpack_available",
        "cpu_info",
    ],
)

_PACKAGES = """
mindspore msadapter numpy torch torch_npu torchvision transformers accelerate peft trl lightning timm diffusers safetensors
triton networkx sympy
"""


def get_pip_packages() -> str:
    """Return the versions of the packages that take part, one `name==version` a line."""
    found = []
    for name in _PACKAGES.split():
        try:
            found.append(f"{name}=={metadata.version(name)}")
        except metadata.PackageNotFoundError:
            continue
    return "\n".join(found)


def get_env_info() -> SystemEnv:
    """Return the facts as a named tuple with the fields of PyTorch's."""
    machine = doctor.machine()
    facts = dict.fromkeys(SystemEnv._fields, "N/A")
    facts |= {
        "torch_version": TORCH_VERSION,
        "is_debug_build": "False",
        "gcc_version": machine.get("compiler"),
        "os": platform.platform(),
        "libc_version": "-".join(platform.libc_ver()),
        "python_version": f"{sys.version.replace(os.linesep, ' ')} ({sys.maxsize.bit_length() + 1}-bit runtime)",
        "python_platform": platform.platform(),
        "is_cuda_available": str(cuda.is_available()),
        "nvidia_gpu_models": None,
        "is_xpu_available": "False",
        "pip_version": f"pip{sys.version_info.major}",
        "pip_packages": get_pip_packages(),
        "is_xnnpack_available": "False",
        "cpu_info": machine.get("machine"),
    }
    return SystemEnv(**facts)


def pretty_str(envinfo: SystemEnv) -> str:
    """Return the facts as text, and below it the report of `python -m msadapter doctor`."""
    rows = [
        ("PyTorch interface", f"{envinfo.torch_version}, answered by msadapter on MindSpore"),
        ("OS", envinfo.os),
        ("GCC version", envinfo.gcc_version),
        ("Libc version", envinfo.libc_version),
        ("Python version", envinfo.python_version),
        ("Python platform", envinfo.python_platform),
        ("Is CUDA available", envinfo.is_cuda_available),
        ("CPU", envinfo.cpu_info),
    ]
    lines = [f"{name}: {value}" for name, value in rows]
    lines += ["", "Versions of relevant libraries:"]
    lines += [f"[{envinfo.pip_version}] {package}" for package in str(envinfo.pip_packages).splitlines()]
    return "\n".join([*lines, "", "python -m msadapter doctor:", *doctor.report()])


def get_pretty_env_info() -> str:
    """Return the facts as text."""
    return pretty_str(get_env_info())


def main() -> None:
    """Print the facts."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
