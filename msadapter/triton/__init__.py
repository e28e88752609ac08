"""Triton's names for programs that define kernels when they are imported; launching one is an error.

It answers `import triton` when MSADAPTER_TRITON=1 (docs/distributed.md).
"""

from . import language, runtime
from .runtime.jit import Config, JITFunction, autotune, heuristics, jit

__version__ = "3.0.0"
__all__ = [
    "Config",
    "JITFunction",
    "autotune",
    "cdiv",
    "heuristics",
    "jit",
    "language",
    "next_power_of_2",
    "runtime",
]


def cdiv(x: int, y: int) -> int:
    """x / y, rounded up."""
    return -(-x // y)


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is not below n."""
    return 1 << max(n - 1, 0).bit_length()
