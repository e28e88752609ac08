"""torch.utils.collect_env: the facts that a bug report needs. They are those of `python -m msadapter doctor`.

python -m torch.utils.collect_env
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
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


def run(command: str | list[str]) -> tuple[int, str, str]:
    """Run a command, a text by the shell. Return (exit code, output, errors)."""
    done = subprocess.run(
        command, shell=isinstance(command, str), capture_output=True, text=True, errors="replace", check=False
    )
    return done.returncode, done.stdout.strip(), done.stderr.strip()


# Programs hand the functions below what runs their commands: `run`, or a function like it.
def run_and_read_all(run_lambda, command) -> str | None:
    """Return the output of a command, or None if it fails."""
    code, output, _ = run_lambda(command)
    return None if code else output


def run_and_parse_first_match(run_lambda, command, regex) -> str | None:
    """Return the first group of the first match in the output of a command; None if it fails or nothing matches."""
    output = run_and_read_all(run_lambda, command)
    found = re.search(regex, output) if output is not None else None
    return found.group(1) if found else None


def run_and_return_first_line(run_lambda, command) -> str | None:
    """Return the first line of the output of a command, or None if it fails."""
    output = run_and_read_all(run_lambda, command)
    return None if output is None else output.split("\n")[0]


def get_cpu_info(run_lambda) -> str:
    """Return what lscpu says of the processor, or its error."""
    code, output, error = run_lambda("lscpu")
    return error if code else output


def get_gcc_version(run_lambda) -> str | None:
    """Return the version of gcc, or None without it."""
    return run_and_parse_first_match(run_lambda, "gcc --version", r"gcc (.*)")


def get_clang_version(run_lambda) -> str | None:
    """Return the version of clang, or None without it."""
    return run_and_parse_first_match(run_lambda, "clang --version", r"clang version (.*)")


def get_cmake_version(run_lambda) -> str | None:
    """Return the version of cmake, or None without it."""
    return run_and_parse_first_match(run_lambda, "cmake --version", r"cmake (.*)")


def get_nvidia_driver_version(run_lambda) -> str | None:
    """Return the version of NVIDIA's driver, or None without it."""
    return run_and_parse_first_match(run_lambda, "nvidia-smi", r"Driver Version: (.*?) ")


def get_gpu_info(run_lambda) -> None:
    """Return None: no GPU is used here."""


def get_pip_packages(run_lambda=None, patterns=None) -> str:
    """Return the versions of the packages that take part, one `name==version` a line. They are read without a command."""
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
