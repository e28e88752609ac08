"""torch.ao.nn.qat: modules whose weight is rounded as a quantisation would round it, for training."""

from .modules import Linear

__all__ = ["Linear"]
