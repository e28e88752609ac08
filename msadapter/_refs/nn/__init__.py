"""torch._refs.nn."""

from . import functional

__all__ = ["functional"]
