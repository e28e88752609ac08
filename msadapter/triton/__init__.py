"""Names of Triton, for programs that define kernels at import. Launching a kernel raises an error, or interprets it
with TRITON_INTERPRET=1.

`import triton` returns this package if MSADAPTER_TRITON=1 is set (docs/distributed.md).
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
    """Return x / y, rounded up."""
    return -(-x // y)


def next_power_of_2(n: int) -> int:
    """Return the smallest power of two that is at least n."""
    return 1 << max(n - 1, 0).bit_length()
