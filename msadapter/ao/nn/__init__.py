"""torch.ao.nn: quantised modules, and modules for a training for quantisation."""

from . import qat, quantized

__all__ = ["qat", "quantized"]
