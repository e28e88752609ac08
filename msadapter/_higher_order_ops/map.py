"""torch._higher_order_ops.map."""

from __future__ import annotations

from collections.abc import Callable

from .. import ops
from ..tensor import Tensor
from ..utils._pytree import tree_flatten, tree_leaves, tree_unflatten

__all__ = ["map"]


def map(f: Callable, xs, *args):
    """Return ``f(x, *args)`` for each slice ``x`` of ``xs`` along the first dim, stacked along a new first dim.

    Args:
        f: returns tensors, also in nested tuples, lists and dicts.
        xs: tensors with equal first dims, also nested.

    Raises:
        RuntimeError: the first dims differ or are 0, or ``xs`` has something else than tensors.
    """
    leaves, structure = tree_flatten(xs)
    if not leaves or any(not isinstance(leaf, Tensor) or leaf.ndim == 0 for leaf in leaves):
        raise RuntimeError(f"Mapped xs can only consist of tensors with a first dim. Got {xs}.")
    length = leaves[0].shape[0]
    if any(leaf.shape[0] != length for leaf in leaves):
        raise RuntimeError(
            f"Leading dimensions of mapped xs must be consistent. Got shapes {[tuple(leaf.shape) for leaf in leaves]}."
        )
    if length == 0:
        raise RuntimeError("Leading dimensions of mapped xs cannot be 0.")
    return stacked([f(tree_unflatten([leaf[i] for leaf in leaves], structure), *args) for i in range(length)])


def stacked(results: list):
    """Stack results of the same structure, tensor by tensor, along a new first dim."""
    _, structure = tree_flatten(results[0])
    columns = zip(*(tree_leaves(result) for result in results), strict=True)
    return tree_unflatten([ops.stack(column) for column in columns], structure)
