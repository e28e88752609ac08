"""torch._higher_order_ops.associative_scan."""

from __future__ import annotations

from collections.abc import Callable

from .. import ops
from ..func import vmap
from ..tensor import Tensor
from ..utils._pytree import tree_flatten, tree_unflatten

__all__ = ["associative_scan"]


def associative_scan(
    combine_fn: Callable, xs, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
):
    """Combine all slices of ``xs`` along ``dim`` up to each slice with an associative function.

    The slices are combined in pairs, then the pairs, and so on, so n slices take about 2 log2(n) calls. The order of the
    combinations is PyTorch's, whose results depend on it in the last bits.

    Args:
        combine_fn: takes two values of the form of ``xs``, and returns one. In the mode "generic" it gets single slices,
            without ``dim``. In the mode "pointwise" it gets several slices at once, with ``dim`` as the first dim.
        xs: tensors that are equally long along ``dim``, also in nested tuples, lists and dicts.
        reverse: begin with the last slice. The results keep the order of the slices.
        combine_mode: "generic", or "pointwise", which PyTorch has for accelerators alone.

    Returns:
        Tensors of the form and the shapes of ``xs``.

    Raises:
        ValueError: an argument is something else, or there is no slice.
        IndexError: the tensors have no such dim.
        RuntimeError: ``reverse`` is not a bool, or combine_fn returns a value of another form.
    """
    leaves, structure = tree_flatten(xs)
    _check(combine_fn, leaves, dim, reverse, combine_mode)
    rank = leaves[0].ndim
    if not -rank <= dim < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})"
        )
    dim %= rank
    if any(leaf.ndim <= dim or leaf.shape[dim] == 0 for leaf in leaves):
        raise ValueError("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0")
    each = combine_fn if combine_mode == "pointwise" else vmap(combine_fn)

    def combined(left: list, right: list) -> list:
        found, form = tree_flatten(each(tree_unflatten(left, structure), tree_unflatten(right, structure)))
        if form != structure:
            raise RuntimeError(
                f"combine_fn must return a value of the form of xs, {structure}, but returned {form}"
            )
        return found

    parts = [ops.movedim(leaf, dim, 0) for leaf in leaves]
    found = _scan(combined, [ops.flip(part, [0]) for part in parts] if reverse else parts)
    return tree_unflatten(
        [ops.movedim(ops.flip(part, [0]) if reverse else part, 0, dim) for part in found], structure
    )


def _check(combine_fn, leaves: list, dim, reverse, combine_mode) -> None:
    if not callable(combine_fn):
        raise ValueError(f"Combine_fn must be a callable, but got {combine_fn}")
    if not isinstance(dim, int):
        raise ValueError(f"Dim must be an int, but got {type(dim)}")
    if not isinstance(reverse, bool):
        raise RuntimeError(f"Reverse must be a bool, but got {type(reverse)}")
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    if not leaves:
        raise ValueError("Expected at least 1 xs leaf")
    if any(not isinstance(leaf, Tensor) for leaf in leaves):
        raise ValueError("xs leaves must be a Tensor")
    if combine_mode == "pointwise" and any(leaf.device.type == "cpu" for leaf in leaves):
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or XPU")
    if any(leaf.is_sparse for leaf in leaves):
        raise ValueError("xs leaves must dense Tensors, consider using `to_dense()`")


def _scan(combined: Callable, parts: list) -> list:
    """The scan over the first dim: of the pairs first, which gives every second result, then the results between them."""
    length = parts[0].shape[0]
    if length < 2:
        return parts
    pairs = combined([part[:-1:2] for part in parts], [part[1::2] for part in parts])
    odd = _scan(combined, pairs)
    before = [part[:-1] for part in odd] if length % 2 == 0 else odd
    between = [part[2::2] for part in parts]
    if between[0].shape[0]:
        between = combined(before, between)
    even = [ops.cat([part[:1], rest], 0) for part, rest in zip(parts, between, strict=True)]
    return [_alternating(first, second) for first, second in zip(even, odd, strict=True)]


def _alternating(even, odd):
    """even[0], odd[0], even[1], ... along the first dim. ``even`` may have one slice more."""
    count = odd.shape[0]
    both = ops.stack([even[:count], odd], 1).flatten(0, 1)
    return both if even.shape[0] == count else ops.cat([both, even[count:]], 0)
