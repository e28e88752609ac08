"""torch.ao: quantisation, as far as it is supported."""

from . import nn, quantization

__all__ = ["nn", "quantization"]
