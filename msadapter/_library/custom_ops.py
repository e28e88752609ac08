"""torch._library.custom_ops: the classes behind torch.library.custom_op."""

from ..library import CustomOpDef, custom_op

__all__ = ["CustomOpDef", "custom_op"]
