"""flex_attention: attention whose scores a function of the program changes or hides.

Nothing is fused here: all scores are computed and kept, as PyTorch does without its compiler. PyTorch on a CPU has neither its
gradients nor the largest scores; both are here.
"""

from __future__ import annotations

import inspect
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple, TypedDict

from ... import ops
from ..._dynamo._trace_wrapped_higher_order_op import TransformGetItemToIndex
from ..._errors import unsupported
from ..._values.dtype import bool as _bool
from ..._values.dtype import float32, float64
from ...accelerator import current_accelerator
from ...amp.autocast_mode import autocast, get_autocast_dtype, is_autocast_enabled
from ...func import vmap
from ...tensor import Tensor
from ._block_mask import (
    _DEFAULT_SPARSE_BLOCK_SIZE,
    _LARGE_SPARSE_BLOCK_SIZE,
    BlockMask,
    _mask_of_a_part,
    block_mask_of,
    noop_mask,
)
from ._formula import check_heads

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

# A score function takes a score and the indices of batch, head, query and key; a mask function takes the indices.
_score_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_mask_mod_signature = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
_INFINITY = float("inf")


class AuxRequest(NamedTuple):
    """Names the additional results that flex_attention returns."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The additional results: logarithms of the sums of the exponentials, and largest scores (batch, heads, queries)."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


class FlexKernelOptions(TypedDict, total=False):
    """Options of PyTorch's compiled kernels. None has an effect here."""

    BACKEND: Any


def _takes(mod: Callable) -> int:
    """Return how many arguments without a default a function has: 5 for a score function, 4 for a mask function."""
    code = getattr(mod, "__code__", None)
    if code is not None:
        count = code.co_argcount - len(getattr(mod, "__defaults__", None) or ())
    else:
        parameters = inspect.signature(mod).parameters.values()
        count = sum(one.default is inspect.Parameter.empty for one in parameters)
    if count not in (4, 5):
        raise AssertionError(f"Expected 4 or 5 positional args, got {count}")
    return count


def _over_all(mod: Callable, score: bool) -> Callable:
    """Map a function of single indices over all of batch, heads, queries and keys."""
    first = (0,) if score else ()
    for dim in (3, 2, 1, 0):
        mod = vmap(mod, in_dims=(*first, *(0 if i == dim else None for i in range(4))))
    return mod


def _indices(sizes, device) -> list[Tensor]:
    return [ops.arange(size, device=device) for size in sizes]


def create_mask(mod_fn: Callable, B, H, Q_LEN: int, KV_LEN: int, device=None) -> Tensor:
    """Return a bool tensor (B, H, Q_LEN, KV_LEN): true where a mask function is, or where a score function keeps a zero finite.

    B, H: None is 1. device: the accelerator by default, or the CPU.
    """
    device = device if device is not None else current_accelerator() or "cpu"
    sizes = (B or 1, H or 1, Q_LEN, KV_LEN)
    score = _takes(mod_fn) == 5
    with TransformGetItemToIndex():
        if not score:
            return _over_all(mod_fn, False)(*_indices(sizes, device))
        changed = _over_all(mod_fn, True)(ops.zeros(sizes, device=device), *_indices(sizes, device))
        return ~ops.isneginf(changed)


def create_block_mask(
    mask_mod: Callable, B, H, Q_LEN: int, KV_LEN: int, device=None, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
    _compile=False, separate_full_blocks: bool = True, compute_dq_write_order: bool = False, dq_kv_order: bool = True,
) -> BlockMask:  # fmt: skip
    """Return the BlockMask of a mask function for B x H attentions of Q_LEN queries over KV_LEN keys.

    B, H: None if the mask is the same for all. BLOCK_SIZE: queries and keys of a block, one number or two. separate_full_blocks:
    list the blocks that are not masked at all by themselves.
    """
    if _takes(mask_mod) != 4:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    if compute_dq_write_order:
        raise unsupported(
            "torch.nn.attention.flex_attention.create_block_mask", "compute_dq_write_order is not supported"
        )
    q_block, kv_block = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    return block_mask_of(mask, mask_mod, (Q_LEN, KV_LEN), q_block, kv_block, separate_full_blocks)


def _combined(mask_mods, start: bool, combine: Callable) -> Callable:
    if not all(callable(one) for one in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask(b, h, q_idx, kv_idx):
        result = b.new_full((), start, dtype=_bool)
        for one in mask_mods:
            result = combine(result, one(b, h, q_idx, kv_idx))
        return result

    return mask


def or_masks(*mask_mods) -> Callable:
    """Return a mask function that is true where one of the mask functions is. RuntimeError if one is not callable."""
    return _combined(mask_mods, False, operator.or_)


def and_masks(*mask_mods) -> Callable:
    """Return a mask function that is true where all of the mask functions are. RuntimeError if one is not callable."""
    return _combined(mask_mods, True, operator.and_)


# ---- the attention
def _check(query, key, value, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    """Raise PyTorch's error if the operands do not fit."""
    if any(x.is_nested for x in (query, key, value)):
        raise NotImplementedError(
            "flex_attention does not support NestedTensor inputs, including torch.compile(flex_attention) with jagged NestedTensor "
            "inputs. Convert inputs to dense tensors before calling flex_attention."
        )
    if query.device != key.device or query.device != value.device:
        raise ValueError(
            f"Expected query, key, and value to have the same device type, but got query.device: {query.device}, "
            f"key.device: {key.device}, and value.device: {value.device} instead."
        )
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension "
            f"but got E={query.size(-1)} and E={key.size(-1)}."
        )
    if not query.dim() == key.dim() == value.dim() == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    check_heads(query.size(1), key.size(1), enable_gqa)
    batch, other = query.size(0), key.size(0)
    if batch != other and block_mask is None:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, "
            f"but got block_mask=None, Bq={batch}, and Bkv={other}."
        )
    if batch != other and block_mask.kv_num_blocks.size(0) != batch:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or block_mask and query to have the same batch size, "
            f"but got Bq={batch}, Bkv={other}, B_block_mask={block_mask.kv_num_blocks.size(0)}."
        )


def _check_mask(query, key, block_mask: BlockMask) -> None:
    """Raise PyTorch's error if the mask was made for another size or is elsewhere."""
    if block_mask.mask_mod is _mask_of_a_part:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    if query.device != block_mask.kv_num_blocks.device:
        raise RuntimeError(
            "Expect q/k/v and block_mask to be on the same device "
            f"but got {query.device} and {block_mask.kv_num_blocks.device}."
        )
    if tuple(block_mask.BLOCK_SIZE) == (_LARGE_SPARSE_BLOCK_SIZE,) * 2:
        return
    own, made = (query.size(-2), key.size(-2)), tuple(block_mask.shape[-2:])
    if own == made:
        return
    smaller = own[0] > made[0] or own[1] > made[1]
    told = (
        f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={own[0]} and kv_len={own[1]}. "
        f"As the block mask was created for a {'smaller' if smaller else 'larger'} length than you're using it for, you "
    )
    raise ValueError(
        told + "likely need to create a new block mask."
        if smaller
        else told
        + "can either 1. create a new block mask with the correct length, or 2. 'adjust' the existing block mask to the "
        "correct length by calling block_mask._adjust(q_len, kv_len). This essentially 'crops' the block mask to the upper left "
        "corner, which does not work for all mask_mods!"
    )


def _scores(query, key, score_mod: Callable | None, mask_mod: Callable | None, scale: float) -> Tensor:
    """The scores after both functions, (batch, heads, queries, keys), in float32 or float64; -infinity where nothing is seen."""
    wide = float64 if query.dtype == float64 else float32
    scores = query.to(wide) @ key.to(wide).mT * scale
    places = _indices(scores.shape, scores.device)
    with TransformGetItemToIndex():
        if score_mod is not None:
            scores = _over_all(score_mod, True)(scores, *places).to(wide)
        if mask_mod is not None:
            scores = ops.where(_over_all(mask_mod, False)(*places), scores, -_INFINITY)
    return scores


def flex_attention(
    query, key, value, score_mod: Callable | None = None, block_mask: BlockMask | None = None, scale: float | None = None,
    enable_gqa: bool = False, return_lse: bool = False, kernel_options: FlexKernelOptions | None = None, *,
    return_aux: AuxRequest | None = None,
):  # fmt: skip
    """Return softmax(score_mod(query @ key^T * scale)) @ value, where the mask of `block_mask` hides scores.

    query (B, Hq, L, E), key (B, Hkv, S, E), value (B, Hkv, S, Ev); the result is (B, Hq, L, Ev). score_mod(score, b, h, q_idx,
    kv_idx) changes a score. scale: 1 / sqrt(E) by default. enable_gqa: several heads of the queries share one of the keys.
    return_lse: also return the logarithms of the sums of the exponentials (B, Hq, L). return_aux: return an AuxOutput with what it
    names instead. A query that sees no key gets zeros.

    Raises:
        ValueError: the operands or the mask do not fit; the messages are PyTorch's.
    """
    _check(query, key, value, block_mask, enable_gqa)
    if block_mask is not None:
        _check_mask(query, key, block_mask)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    kind = query.device.type
    if is_autocast_enabled(kind):
        lower = (x.to(get_autocast_dtype(kind)) for x in (query, key, value))
        with autocast(kind, enabled=False):
            return flex_attention(
                *lower, score_mod, block_mask, scale, enable_gqa, return_lse, return_aux=return_aux
            )
    shared = query.size(1) // key.size(1)
    key, value = (x.repeat_interleave(shared, 1).expand(query.size(0), -1, -1, -1) for x in (key, value))
    mask_mod = None if block_mask is None or block_mask.mask_mod is noop_mask else block_mask.mask_mod
    scores = _scores(
        query, key, score_mod, mask_mod, 1 / math.sqrt(query.size(-1)) if scale is None else scale
    )
    out = ops._safe_softmax(scores, -1).to(query.dtype) @ value.to(query.dtype)
    if return_aux is not None:
        lse = scores.logsumexp(-1) if return_aux.lse else None
        return out, AuxOutput(lse, scores.amax(-1) if return_aux.max_scores else None)
    return (out, scores.logsumexp(-1)) if return_lse else out
