"""torch.backends.cpu: the capabilities of the processor."""

import os

_LIMITS = {"x86-64": "DEFAULT", "x86-64-v3": "AVX2", "x86-64-v4": "AVX512"}  # what MSADAPTER_CPU can choose


def get_cpu_capability() -> str:
    """Return the widest vector instructions that the kernels use: 'AVX512', 'AVX2' or 'DEFAULT'.

    They are the widest of this processor, or those that MSADAPTER_CPU chooses, as ATEN_CPU_CAPABILITY does in PyTorch.
    """
    if limit := _LIMITS.get(os.environ.get("MSADAPTER_CPU", "")):
        return limit
    with open("/proc/cpuinfo") as stream:
        flags = next((line.split() for line in stream if line.startswith("flags")), [])
    return "AVX512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "DEFAULT"
