"""torch._inductor: the options of PyTorch's compiler, which programs set. msadapter does not have the compiler itself."""

from . import config

__all__ = ["config"]
