"""torch.quantization: the older name of torch.ao.quantization."""

from .ao.quantization import DeQuantStub, QuantStub, quantize_dynamic

__all__ = ["DeQuantStub", "QuantStub", "quantize_dynamic"]
