"""Indexing by 0-dim tensors kept as indexing, for functions of index tensors (attention masks) under vmap."""

from __future__ import annotations

from .. import ops
from ..overrides import TorchFunctionMode
from ..tensor import Tensor
from ..tensor._tensor import tensor
from ..utils._pytree import tree_leaves

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(TorchFunctionMode):
    """While it is active, `x[i, j]` with numbers and 0-dim tensors gathers by tensors rather than taking a view at their values."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is Tensor.__getitem__:
            indexed, index = args
            items = tree_leaves(index)
            if all(isinstance(i, (Tensor, int)) and not isinstance(i, bool) for i in items):
                places = [i if isinstance(i, Tensor) else tensor(i, device=indexed.device) for i in items]
                return ops._index(indexed, places)
        return func(*args, **(kwargs or {}))
