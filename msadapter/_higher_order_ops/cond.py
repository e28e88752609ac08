"""torch.cond."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..tensor import Tensor
from ..utils._pytree import tree_leaves

__all__ = ["cond"]


def cond_op(pred, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()) -> Any:
    """Run one of the branches. This is ``cond`` without the checks of its arguments."""
    return true_fn(*operands) if pred else false_fn(*operands)


def cond(pred, true_fn: Callable, false_fn: Callable, operands: tuple | list = ()) -> Any:
    """Return ``true_fn(*operands)`` if ``pred`` is true, else ``false_fn(*operands)``. Gradients flow through the one that runs.

    Args:
        pred: a bool, or a tensor of one element.
        operands: tensors, also in nested tuples, lists and dicts.

    Raises:
        RuntimeError: an argument is something else.
    """
    if not isinstance(pred, (bool, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    tensors = isinstance(operands, (tuple, list)) and all(
        isinstance(t, Tensor) for t in tree_leaves(operands)
    )
    if not tensors:
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only "
            f"consists of tensor leaves, but got {operands}."
        )
    if isinstance(pred, bool):
        warnings.warn(
            "Pred is a Python constant. When used with torch.cond, it specializes on one of the branches."
            " If you want torch.cond to preserve two branches, please make the predicate a boolean tensor or a SymBool.",
            UserWarning,
            stacklevel=2,
        )
    return cond_op(pred, true_fn, false_fn, operands)
