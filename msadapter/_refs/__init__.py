"""torch._refs: in PyTorch, reference implementations of operators in Python. Here they are the operators themselves."""

from . import _conversions, fft, linalg, nn, special
from ._names import finder

__all__ = ["_conversions", "fft", "linalg", "nn", "special"]
__getattr__ = finder("torch")
