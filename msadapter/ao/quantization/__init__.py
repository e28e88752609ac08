"""torch.ao.quantization: the modules that mark where a model would be quantised."""

from .stubs import DeQuantStub, QuantStub

__all__ = ["DeQuantStub", "QuantStub"]
