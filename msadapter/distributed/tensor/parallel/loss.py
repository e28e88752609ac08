"""loss_parallel: a block in which cross entropy accepts logits that are sharded along the classes."""

from .._class_loss import loss_parallel

__all__ = ["loss_parallel"]
