"""torch._higher_order_ops.scan."""

from __future__ import annotations

from collections.abc import Callable

from .. import ops
from ..tensor import Tensor
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten
from .map import stacked

__all__ = ["scan"]


def scan(combine_fn: Callable, init, xs, *, dim: int = 0, reverse: bool = False):
    """Run ``carry, y = combine_fn(carry, x)`` for each slice ``x`` of ``xs`` along ``dim``, from the carry ``init`` on.

    Args:
        xs: tensors that are equally long along ``dim``, also in nested tuples, lists and dicts.
        reverse: begin with the last slice. The results keep the order of the slices.

    Returns:
        The last carry, and all ``y`` stacked along a new dim, which is number ``dim``.

    Raises:
        RuntimeError: an argument is something else, or there is no slice.
    """
    if not callable(combine_fn):
        raise RuntimeError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise RuntimeError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    leaves, structure = tree_flatten(xs)
    if not leaves or any(not isinstance(leaf, Tensor) for leaf in leaves):
        raise RuntimeError(f"All xs leaves must be a Tensor, but got {xs}")
    moved = [ops.movedim(leaf, dim, 0) for leaf in leaves]
    length = moved[0].shape[0]
    if length == 0 or any(leaf.shape[0] != length for leaf in moved):
        raise RuntimeError("All xs leaves must have the same size along the scanned dim, which is not 0")
    carry, found = init, [None] * length
    for i in reversed(range(length)) if reverse else range(length):
        carry, found[i] = combine_fn(carry, tree_unflatten([leaf[i] for leaf in moved], structure))
    return carry, tree_map(lambda ys: ops.movedim(ys, 0, dim), stacked(found))
