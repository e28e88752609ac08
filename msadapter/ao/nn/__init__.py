"""torch.ao.nn: quantised modules."""

from . import quantized

__all__ = ["quantized"]
