"""Functions that run once for each element of a batch.

PyTorch calls this the fallback of vmap. Its tests disable it, or let it warn, to find the operators without a rule.
"""

from __future__ import annotations

import warnings

from .. import ops
from .._host import extensions
from ..tensor import Tensor
from ..utils._pytree import instances_in, tree_flatten, tree_unflatten
from ._batched import (
    BatchedTensor,
    _Batches,
    batched_like,
    innermost,
    is_batched,
    levels,
    rewrapped,
    tangent_of_each,
    wrap,
)

IN_PLACE = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` "
    "in extra_args that has "
    "more elements than `self`. This happened due to `other` being vmapped over but `self` not being "
    "vmapped over in a vmap. "
    "Please try to use out-of-place operators instead of inplace arithmetic."
)


def tensors_in(tree) -> list:
    """Yield every tensor in nested tuples, lists, dicts and slices."""
    return instances_in(tree, Tensor)


class Fallback:
    """Switches of operators that are run for each element: whether they are, and whether they warn."""

    enabled = True
    warns = False

    @classmethod
    def noted(cls, name: str) -> None:
        """Say that an operator is run for each element. RuntimeError if that is disabled."""
        if not cls.enabled:
            raise RuntimeError(
                f"vmap: {name} hit the vmap fallback which is currently disabled. It has no rule for batches of these arguments."
            )
        if cls.warns:
            warnings.warn(
                f"There is a performance drop because we have not yet implemented the batching rule for {name}, or not for these "
                "arguments: it runs once for each element of the batch.",
                UserWarning,
                stacklevel=2,
            )


def looped(function, args, kwargs, level, inplace):
    """Call ``function`` on each element of what is batched at ``level`` and stack the results."""
    if level.size == 0:
        raise RuntimeError("vmap: a batch of no elements is not supported for this operation")
    leaves, spec = tree_flatten((list(args), kwargs))
    outputs = []
    for i in range(level.size):
        parts = [ops.select(x._value, 0, i) if is_batched(x, level) else x for x in leaves]
        own_args, own_kwargs = tree_unflatten(parts, spec)
        outputs.append(function(*own_args, **own_kwargs))
    return args[0] if inplace else stacked(outputs, level)


def stacked(outputs: list, level):
    """Combine the results of all elements into one batched result of the same structure."""
    first = outputs[0]
    if isinstance(first, Tensor):
        return wrap(ops.stack(outputs), level)
    if isinstance(first, (tuple, list)):
        columns = [stacked(list(column), level) for column in zip(*outputs, strict=True)]
        return type(first)(tuple(columns)) if isinstance(first, tuple) else columns
    if any(o != first for o in outputs):
        raise RuntimeError("vmap: an operation gives different Python values for the elements of a batch")
    return first


def _gradients_of_each(run, vectors, keep):
    """Return ``run(vectors, keep)``: the gradients of plain outputs, where ``vectors`` begin a backward pass.

    If vectors are batched, the pass runs for each element. The graph is kept until the last one, and then if ``keep``.
    """
    present = [v for v in vectors if isinstance(v, BatchedTensor)]
    if not present:
        return run(vectors, keep)
    level = max((v._level for v in present), key=levels.index)
    if not level.size:
        raise RuntimeError("vmap: gradients for a batch of no elements are not supported")
    rows = []
    for i in range(level.size):
        row = [ops.select(v._value, 0, i) if is_batched(v, level) else v for v in vectors]
        rows.append(_gradients_of_each(run, row, keep or i + 1 < level.size))
    return stacked(rows, level)


extensions.batches.provide(
    _Batches(BatchedTensor, batched_like, innermost, rewrapped, tangent_of_each, _gradients_of_each)
)
