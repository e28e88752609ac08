"""torch.ao: quantisation, as far as it is supported."""

from . import quantization

__all__ = ["quantization"]
