"""torch._refs.linalg."""

from ._names import finder

__getattr__ = finder("linalg")
