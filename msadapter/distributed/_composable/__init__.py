"""torch.distributed._composable: the functions that give a module a way of training on several processes, in place."""

from .replicate import replicate

__all__ = ["replicate"]
