"""Attention of one sequence by the plain formula, with the arguments that FlashAttention's functions have."""

from __future__ import annotations

from ...ops import arange, einsum, logsumexp, zeros

_INFINITY = float("inf")


def check_heads(heads: int, groups: int, enable_gqa: bool) -> None:
    """Raise PyTorch's ValueError if so many heads of queries cannot share the groups of keys and values."""
    if not enable_gqa and heads != groups:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={groups}. "
            "Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % groups:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA "
            f"but got Hq={heads} and Hkv={groups}."
        )


def paged(pages, row, count: int):
    """The first `count` elements of the pages that a row of a block table names: (count, groups, width)."""
    size = pages.shape[1]
    return pages[row[: -(-count // size)].long()].flatten(0, 1)[:count]


def attend(q, k, v, scale, causal: bool, window):
    """(attention of q (s, h, d) over k and v (t, g, d), logarithm of the sum of the exponentials (h, s)), in float32 inside.

    scale: of the scores, 1 / sqrt(d) if it is None. window: how many keys to the left and right of a query it sees, -1 for all.
    A causal mask and a window count from the last key. A query that sees no key gets zeros, and its logarithm is -infinity.
    """
    queries, keys = q.shape[0], k.shape[0]
    if keys == 0:
        return q.new_zeros((*q.shape[:-1], v.shape[-1])), zeros(
            (q.shape[1], queries), device=q.device
        ) - _INFINITY
    heads = q.shape[1] // k.shape[1]
    k, v = (x.float().repeat_interleave(heads, 1) for x in (k, v))
    scores = einsum("shd,thd->hst", q.float(), k) * (q.shape[-1] ** -0.5 if scale is None else scale)
    ahead = arange(keys, device=q.device) - arange(queries, device=q.device).unsqueeze(1) - (keys - queries)
    left, right = window[0], 0 if causal else window[1]
    hidden = (ahead > right) & (right >= 0) | (-ahead > left) & (left >= 0)
    scores = scores.masked_fill(hidden, -_INFINITY)
    weights = scores.softmax(-1).masked_fill(hidden.all(-1, keepdim=True), 0.0)
    return einsum("hst,thd->shd", weights, v).to(q.dtype), logsumexp(scores, -1)
