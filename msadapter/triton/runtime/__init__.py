"""Where Triton keeps its kernels."""

from . import jit
