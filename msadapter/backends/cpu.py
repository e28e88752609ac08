"""torch.backends.cpu: the capabilities of the processor."""

import os

from .._host import instructions


def get_cpu_capability() -> str:
    """Return the widest vector instructions that the kernels use: 'AVX512', 'AVX2' or 'DEFAULT'.

    They are the widest of this processor, or those that MSADAPTER_CPU chooses, as ATEN_CPU_CAPABILITY does in PyTorch.
    """
    chosen = instructions.known().get(os.environ.get(instructions.VARIABLE, ""))
    features = chosen.needs if chosen else instructions.processor().split()
    return "AVX512" if "avx512f" in features else "AVX2" if "avx2" in features else "DEFAULT"
