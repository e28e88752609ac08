"""torch._refs.special."""

from ._names import finder

__getattr__ = finder("special")
