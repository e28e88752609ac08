"""torch._functorch.batch_norm_replacement: batch normalisation without running statistics."""

from ..func import replace_all_batch_norm_modules_

__all__ = ["replace_all_batch_norm_modules_"]
