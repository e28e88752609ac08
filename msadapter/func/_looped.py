"""Functions that run once for each element of a batch."""

from __future__ import annotations

from .. import ops
from ..tensor import Tensor
from ..utils._pytree import instances_in, tree_flatten, tree_unflatten
from ._batched import is_batched, wrap

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
