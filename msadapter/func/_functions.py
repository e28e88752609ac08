"""autograd.Function with batched tensors."""

from __future__ import annotations

from typing import NamedTuple

from .. import ops
from .._host import extensions
from ..autograd import Function
from ..tensor import Tensor
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from ._batched import BatchedTensor, is_batched, levels, wrap
from ._looped import looped


class VmapInfo(NamedTuple):
    """What the ``vmap`` method of a Function gets to know about the batch."""

    batch_size: int
    randomness: str


def _apply(cls, args, kwargs):
    """Call ``cls.apply`` with batched arguments: with the Function's own rule if it has one, else in a loop."""
    present = [a for a in args if isinstance(a, BatchedTensor)]
    if not present:
        return NotImplemented
    level = max((x._level for x in present), key=levels.index)
    own = None if cls.vmap is Function.vmap else cls.vmap
    if own is None:
        return looped(cls.apply, args, kwargs, level, False)
    if cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an "
            "overriden vmap staticmethod. "
            "Please set generate_vmap_rule=False or delete the overriden vmap staticmethod to avoid ambiguity."
        )
    leaves, spec = tree_flatten(tuple(args))
    in_dims = tree_unflatten([0 if is_batched(x, level) else None for x in leaves], spec)
    values = tree_unflatten([x._value if is_batched(x, level) else x for x in leaves], spec)
    outputs, out_dims = own(VmapInfo(level.size, level.randomness), in_dims, *values)
    flat, out_spec = tree_flatten(outputs)
    dims = _broadcast_to_and_flatten(out_dims, out_spec)
    if dims is None:
        raise RuntimeError(
            f"{cls.__name__}.vmap: out_dims {out_dims} do not have the structure of the outputs"
        )
    made = [
        wrap(ops.movedim(x, d, 0), level) if isinstance(x, Tensor) and d is not None else x
        for x, d in zip(flat, dims, strict=True)
    ]
    return tree_unflatten(made, out_spec)


extensions.batched_function.provide(_apply)
