"""torch._higher_order_ops.while_loop."""

from __future__ import annotations

from collections.abc import Callable

from ..tensor import Tensor
from ..utils._pytree import tree_leaves, tree_structure

__all__ = ["while_loop"]


def while_loop(cond_fn: Callable, body_fn: Callable, carried_inputs: tuple | list):
    """Run ``carried = body_fn(*carried)`` as long as ``cond_fn(*carried)`` is true, and return the last ones as a tuple.

    Args:
        cond_fn: returns a bool or a tensor of one element.
        body_fn: returns a tuple with the structure of its arguments.
        carried_inputs: the arguments of the first call: tensors and integers, also in nested tuples, lists and dicts.

    Raises:
        RuntimeError: an argument, or what one of the functions returns, is something else.
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple or list, but got {carried_inputs}.")
    carried = tuple(carried_inputs)
    if any(not isinstance(leaf, (Tensor, int, float)) for leaf in tree_leaves(carried)):
        raise RuntimeError(
            f"Expect carried_inputs to consist of tensors and numbers, but got {carried_inputs}."
        )
    structure = tree_structure(carried)
    while _truth(cond_fn(*carried)):
        found = body_fn(*carried)
        if not isinstance(found, (tuple, list)) or tree_structure(tuple(found)) != structure:
            raise RuntimeError(
                f"Expect body_fn to return a tuple with the structure of its arguments, but got {found}."
            )
        carried = tuple(found)
    return carried


def _truth(value) -> bool:
    if isinstance(value, bool) or (isinstance(value, Tensor) and value.numel() == 1):
        return bool(value)
    raise RuntimeError(f"Expect cond_fn to return a bool or a tensor of one element, but got {value}.")
