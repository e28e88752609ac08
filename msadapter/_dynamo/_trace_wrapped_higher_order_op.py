"""A mode for attention masks under vmap, in which indexing with 0-dimensional tensors gathers elements."""

from __future__ import annotations

from .. import ops
from ..overrides import TorchFunctionMode
from ..tensor import Tensor
from ..tensor._tensor import tensor
from ..utils._pytree import tree_leaves

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(TorchFunctionMode):
    """While this mode is active, `x[i, j]` with numbers and 0-dimensional tensors gathers elements.

    Ordinary indexing would read the values of the index tensors, which have no single value under vmap.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is Tensor.__getitem__:
            indexed, index = args
            items = tree_leaves(index)
            if all(isinstance(i, (Tensor, int)) and not isinstance(i, bool) for i in items):
                places = [i if isinstance(i, Tensor) else tensor(i, device=indexed.device) for i in items]
                return ops._index(indexed, places)
        return func(*args, **(kwargs or {}))
