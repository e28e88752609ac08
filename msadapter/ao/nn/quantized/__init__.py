"""torch.ao.nn.quantized: of it, the modules whose inputs and outputs are ordinary tensors (``dynamic``)."""

from . import dynamic

__all__ = ["dynamic"]
