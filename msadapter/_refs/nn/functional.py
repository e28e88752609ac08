"""torch._refs.nn.functional."""

from .._names import finder

__getattr__ = finder("nn.functional")
