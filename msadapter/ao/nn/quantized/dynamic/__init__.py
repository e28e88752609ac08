"""torch.ao.nn.quantized.dynamic: modules with quantised weights, which quantise their inputs at each call."""

from .modules import Linear

__all__ = ["Linear"]
