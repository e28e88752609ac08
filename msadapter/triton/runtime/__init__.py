"""triton.runtime: the package of the kernel class."""

from . import jit
