"""loss_parallel: a block in which cross entropy works on logits whose classes are spread over processes."""

from .._class_loss import loss_parallel

__all__ = ["loss_parallel"]
