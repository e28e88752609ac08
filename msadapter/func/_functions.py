"""autograd.Function with batched tensors."""

from __future__ import annotations

from typing import NamedTuple

from .. import ops
from .._host import extensions
from ..autograd import Function
from ..tensor import Tensor
from ..utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten
from ._batched import BatchedTensor, is_batched, levels, wrap
from ._derivatives import active
from ._looped import Fallback, looped


class VmapInfo(NamedTuple):
    """What the ``vmap`` method of a Function gets to know about the batch."""

    batch_size: int
    randomness: str


def is_own(cls) -> bool:
    """Return whether a Function is one of this package, which PyTorch has as an operator."""
    return cls.__module__.partition(".")[0] == "msadapter"


def _apply(cls, args, kwargs):
    """Call ``cls.apply`` with batched arguments: with the Function's own rule if it has one, else in a loop.

    Return NotImplemented if no argument is batched.

    Raises:
        RuntimeError: a transform of torch.func runs, and the Function does not say by `setup_context` what its backward needs.
    """
    if cls.setup_context is Function.setup_context and not is_own(cls) and active():
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the "
            "setup_context staticmethod."
        )
    present = [a for a in args if isinstance(a, BatchedTensor)]
    if not present:
        return NotImplemented
    level = max((x._level for x in present), key=levels.index)
    if any(isinstance(x, Tensor) for x in tree_flatten(kwargs)[0]):
        raise NotImplementedError(
            "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to "
            f"autograd.Function. Got: {kwargs}"
        )
    own = None if cls.vmap is Function.vmap else cls.vmap
    if own is None:
        if not (cls.generate_vmap_rule or is_own(cls)):
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the "
                "vmap staticmethod or set generate_vmap_rule=True."
            )
        return looped(cls.apply, args, kwargs, level, False)
    if cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an "
            "overridden vmap staticmethod. "
            "Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity."
        )
    return _by_rule(own, args, level)


def _by_rule(rule, args, level):
    """Call the rule that a program has for a batch: with (facts of the batch, batched dims, *values), and the dims of its result.

    Raises:
        RuntimeError: the rule does not return an output and its dims.
    """
    leaves, spec = tree_flatten(tuple(args))
    in_dims = tree_unflatten([0 if is_batched(x, level) else None for x in leaves], spec)
    values = tree_unflatten([x._value if is_batched(x, level) else x for x in leaves], spec)
    result = rule(VmapInfo(level.size, level.randomness), in_dims, *values)
    if not isinstance(result, tuple) or len(result) != 2:
        found = f"{len(result)} returns" if isinstance(result, tuple) else f"a {type(result)}"
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with "
            f"the output. Got {found} instead"
        )
    outputs, out_dims = result
    flat, out_spec = tree_flatten(outputs)
    dims = _broadcast_to_and_flatten(out_dims, out_spec)
    if dims is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={out_dims} to be compatible with the structure of `output`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]} but output has structure {out_spec}."
        )
    made = [
        wrap(ops.movedim(x, d, 0), level) if isinstance(x, Tensor) and d is not None else x
        for x, d in zip(flat, dims, strict=True)
    ]
    return tree_unflatten(made, out_spec)


def call_operator(operator, rule, args, kwargs):
    """Call an operator of a program with batched arguments: by its rule for a batch, or once for each element."""
    present = [x for x in tree_flatten((tuple(args), kwargs))[0] if isinstance(x, BatchedTensor)]
    level = max((x._level for x in present), key=levels.index)
    if rule is not None:
        if any(isinstance(x, Tensor) for x in tree_flatten(kwargs)[0]):
            raise NotImplementedError(
                f"vmap of {operator}: keyword-only arguments that are tensors are not supported"
            )
        return _by_rule(lambda *given: rule(*given, **kwargs), args, level)
    if "!" in operator._schema:
        raise RuntimeError(
            f"Batching rule not implemented for {operator.name()}; the fallback path doesn't work on out= or view ops."
        )
    Fallback.noted(operator.name())
    return looped(operator, args, kwargs, level, False)


extensions.batched_function.provide(_apply)
