"""torch.backends.cpu: the capabilities of the processor."""


def get_cpu_capability() -> str:
    """Return the widest vector instructions of this processor: 'AVX512', 'AVX2' or 'DEFAULT'."""
    with open("/proc/cpuinfo") as stream:
        flags = next((line.split() for line in stream if line.startswith("flags")), [])
    return "AVX512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "DEFAULT"
