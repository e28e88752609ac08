"""torch.ao.quantization: quantisation of linear layers, and the modules that mark where a model would be quantised."""

from .quantize import quantize_dynamic
from .stubs import DeQuantStub, QuantStub

__all__ = ["DeQuantStub", "QuantStub", "quantize_dynamic"]
