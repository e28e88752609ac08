"""The modules of torch.ao.nn.qat."""

from .linear import Linear

__all__ = ["Linear"]
