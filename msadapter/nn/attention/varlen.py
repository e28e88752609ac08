"""Attention within each of several sequences that are packed one after the other, by the plain formula.

PyTorch has this for its accelerators alone, by FlashAttention. The formula works on every device here.
"""

from __future__ import annotations

from typing import NamedTuple

from ...library import custom_op
from ...ops import cat, zeros
from ...tensor import Tensor
from ._formula import attend, check_heads, paged

__all__ = ["AuxRequest", "varlen_attn"]


class AuxRequest(NamedTuple):
    """Names the additional results that varlen_attn can return."""

    lse: bool = False


def varlen_attn(
    query, key, value, cu_seq_q, cu_seq_k, max_q: int, max_k: int, *, return_aux: AuxRequest | None = None,
    scale: float | None = None, window_size: tuple[int, int] = (-1, -1), enable_gqa: bool = False, seqused_k=None,
    block_table=None, num_splits: int | None = None,
):  # fmt: skip
    """Return the attention of queries (all queries, heads, width) within their sequences, in the shape of query.

    key, value: (all keys, groups, width), or with a block_table (sequences, pages) pages of them (pages, size of a page, groups,
    width). cu_seq_q, cu_seq_k: where each sequence begins, and where the last one ends. seqused_k: how many keys of each sequence
    count. max_q, max_k: the longest lengths, which are not needed here. window_size: how many keys a query sees to its left and
    right, -1 for all; (-1, 0) is a causal mask. num_splits: not used. With `return_aux.lse`, a tuple of the result and the
    logarithms of the sums of the exponentials (heads, all queries).

    Raises:
        ValueError: the numbers of heads do not fit.
    """
    check_heads(query.size(1), key.size(2 if block_table is not None else 1), enable_gqa)
    out, logarithms, _ = _varlen_attn(
        query, key, value, cu_seq_q, cu_seq_k, max_q, max_k, tuple(window_size) == (-1, 0), scale, list(window_size),
        enable_gqa, seqused_k, block_table, num_splits,
    )  # fmt: skip
    return (out, logarithms) if return_aux is not None and return_aux.lse else out


def _keys_of(pool, i: int, begins: list[int], counts: list[int], block_table):
    """The keys or values of sequence i."""
    if block_table is not None:
        return paged(pool, block_table[i], counts[i])
    return pool[begins[i] : begins[i] + counts[i]]


@custom_op("torch_attn::_varlen_attn", mutates_args=())
def _varlen_attn(
    query: Tensor, key: Tensor, value: Tensor, cu_seq_q: Tensor, cu_seq_k: Tensor | None, max_q: int, max_k: int,
    is_causal: bool = False, scale: float | None = None, window_size: list[int] | None = None, enable_gqa: bool = False,
    seqused_k: Tensor | None = None, block_table: Tensor | None = None, num_splits: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """torch.ops.torch_attn._varlen_attn: the result, the logarithms, and a state of random numbers, which are not drawn."""
    window = window_size or (-1, -1)
    ends = cu_seq_q.tolist()
    begins = cu_seq_k.tolist() if cu_seq_k is not None else []
    counts = (
        seqused_k.tolist()
        if seqused_k is not None
        else [b - a for a, b in zip(begins, begins[1:], strict=False)]
    )
    pairs = []
    for i in range(len(ends) - 1):
        k, v = (_keys_of(pool, i, begins, counts, block_table) for pool in (key, value))
        pairs.append(attend(query[ends[i] : ends[i + 1]], k, v, scale, is_causal, window))
    rest = query.shape[0] - ends[-1]  # queries after the last sequence get zeros
    outs = [out for out, _ in pairs] + [query.new_zeros((rest, *query.shape[1:]))]
    logarithms = [log for _, log in pairs] + [zeros((query.shape[1], rest), device=query.device)]
    return cat(outs), cat(logarithms, 1), zeros(2, device=query.device).long()
