"""torch._refs.fft."""

from ._names import finder

__getattr__ = finder("fft")
