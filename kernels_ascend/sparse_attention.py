"""Attention to chosen keys, as DeepSeek-V3.2 trains it, and the loss that teaches its indexer which keys to choose.

`npu_sparse_flash_attention` attends to the keys that npu_lightning_indexer has chosen. The heads of its queries share one head of
keys (multi-head latent attention with absorbed weights). `npu_sparse_lightning_indexer_grad_kl_loss` compares the indexer's
distribution with the attention's own (section 2.1 of the DeepSeek-V3.2-Exp report). On the CPU both are computed for a block of
queries at a time.
"""

from __future__ import annotations

import msadapter
from msadapter.ops import gradients_of, on_ascend, op, recording, t

from ._mapping import LAYOUTS, ascend, no_derivative
from .attention_tiles import working
from .lightning_indexer import IndexerGradients
from .sparse_layout import (
    UNBOUNDED,
    Sequence,
    as_tensor,
    check_layout,
    check_modes,
    check_shapes,
    sequences,
    visible,
)

ABSORBED = 2  # the attention_mode: a key is [key, key_rope], and a value has no rotary part


def _check_mode(name: str, attention_mode: int, query_rope, key_rope) -> None:
    if attention_mode != ABSORBED:
        raise NotImplementedError(
            f"{name}: attention_mode must be 2 (absorbed latent attention), but got {attention_mode}; torch_npu has no other "
            "(docs/coverage.md)"
        )
    if (query_rope is None) != (key_rope is None):
        raise RuntimeError(f"{name}: query_rope and key_rope must be given together")


def _check_ropes(name: str, layout: str, query, key, value, query_rope, key_rope) -> None:
    if query_rope is None:
        check_shapes(name, layout, query, key, value=(value, key.shape))
        return
    size = query_rope.shape[-1]
    check_shapes(
        name,
        layout,
        query,
        key,
        value=(value, key.shape),
        query_rope=(query_rope, (*query.shape[:-1], size)),
        key_rope=(key_rope, (*key.shape[:-1], size)),
    )


def _check_saved(name: str, layout: str, query, key, sparse_indices, softmax_max, softmax_sum) -> None:
    """What the forward took and returned fits its query."""
    statistics = (*query.shape[:-3], 1, *query.shape[-3:-1])
    check_shapes(
        name,
        layout,
        query,
        key,
        sparse_indices=(sparse_indices, (*query.shape[:-2], 1, sparse_indices.shape[-1])),
        softmax_max=(softmax_max, statistics),
        softmax_sum=(softmax_sum, statistics),
    )


def _joined(x, rope, dtype):
    """x followed by its rotary part along the head dim, in the dtype of the computation."""
    return x.to(dtype) if rope is None else t.cat([x, rope], -1).to(dtype)


def _tokens(indices, last, block: int):
    """(chosen tokens, whether the query sees them), of shape (rows, chosen blocks * block). Indices count blocks of tokens."""
    if block > 1:
        inside = msadapter.arange(block, device=indices.device)
        tokens = (indices.unsqueeze(-1) * block + inside).masked_fill(indices.unsqueeze(-1) < 0, -1)
        indices = tokens.flatten(-2)
    safe, seen = visible(indices, last)
    return safe.masked_fill(~seen, 0), seen


def _probabilities(query, key, seen, scale: float, top, total):
    """exp(scores - top) / total of the keys that are seen, and 0 for the others: (rows, heads, chosen)."""
    scores = t.matmul(query, key.transpose(-2, -1)) * scale
    return t.exp(scores - top.unsqueeze(-1)).masked_fill(~seen.unsqueeze(1), 0) / total.unsqueeze(-1)


def _statistics(query, key, seen, scale: float):
    """(largest score, sum of exp(score - largest)) of each query and head. Without a key they are the lowest float32 and 1."""
    scores = (t.matmul(query, key.transpose(-2, -1)) * scale).masked_fill(~seen.unsqueeze(1), float("-inf"))
    lowest = msadapter.finfo(msadapter.float32).min
    top = scores.amax(-1).clamp(min=lowest)
    total = t.exp(scores - top.unsqueeze(-1)).sum(-1)
    return top, total.masked_fill(~seen.any(-1, keepdim=True), 1)


def _formula(query, key, value, query_rope, key_rope, indices, places, scale, block, mode):
    """The attention's output as a differentiable formula, with all scores at once. It is used for second derivatives."""
    q_all, k_all = (
        _joined(query, query_rope, working(query.dtype)),
        _joined(key, key_rope, working(key.dtype)),
    )
    out = t.zeros_like(query)
    for one in filter(lambda one: one.key_count, places):
        rows = slice(0, one.query_count)
        chosen, seen = _tokens(
            indices[one.queries].squeeze(-2), one.last_visible(rows, mode, query.device), block
        )
        q, k = q_all[one.queries], k_all[one.keys].squeeze(-2)[chosen]
        v = value[one.keys].squeeze(-2).to(k.dtype)[chosen]
        top, total = _statistics(q.detach(), k.detach(), seen, scale)
        p = _probabilities(q, k, seen, scale, top, total.new_ones(total.shape))
        p = p / p.sum(-1, keepdim=True).masked_fill(~seen.any(-1)[:, None, None], 1)
        where = t.zeros_like(out, dtype=msadapter.bool)
        where[one.queries] = True
        out = out.masked_scatter(where, t.matmul(p, v).to(query.dtype))
    return out


_NAME = "npu_sparse_flash_attention"


def _gradient(
    gs,
    query,
    key,
    value,
    sparse_indices,
    scale_value,
    query_rope,
    key_rope,
    actual_seq_lengths_query,
    actual_seq_lengths_kv,
    sparse_block_size,
    layout_query,
    sparse_mode,
    attention_mode,
    result0,
    result1,
    result2,
    needs,
):
    if gs[0] is None:
        return (None,) * 5
    if recording():
        places = sequences(_NAME, layout_query, query, key, actual_seq_lengths_query, actual_seq_lengths_kv)
        return gradients_of(
            lambda q, k, v, q_rope, k_rope: _formula(
                q, k, v, q_rope, k_rope, sparse_indices, places, scale_value, sparse_block_size, sparse_mode
            ),
            (query, key, value, query_rope, key_rope),
            needs,
            gs[0],
        )
    if result1.numel() == 0 and query.numel():
        raise RuntimeError(f"{_NAME}: training needs return_softmax_lse=True, as it does on a device")
    found = t.torch_npu_npu_sparse_flash_attention_grad(
        query,
        key,
        value,
        sparse_indices,
        gs[0],
        result0,
        result1,
        result2,
        scale_value,
        sparse_block_size,
        query_rope=query_rope,
        key_rope=key_rope,
        actual_seq_qlen=actual_seq_lengths_query,
        actual_seq_kvlen=actual_seq_lengths_kv,
        layout=layout_query,
        sparse_mode=sparse_mode,
        attention_mode=attention_mode,
    )
    return found if query_rope is not None else (*found[:3], None, None)


@op(
    "torch_npu.npu_sparse_flash_attention(Tensor query, Tensor key, Tensor value, Tensor sparse_indices, float scale_value, *, "
    "Tensor? block_table=None, any actual_seq_lengths_query=None, any actual_seq_lengths_kv=None, Tensor? query_rope=None, "
    "Tensor? key_rope=None, int sparse_block_size=1, str layout_query='BSND', str layout_kv='BSND', int sparse_mode=3, "
    "int pre_tokens=9223372036854775807, int next_tokens=9223372036854775807, int attention_mode=0, "
    "bool return_softmax_lse=False) -> (Tensor, Tensor, Tensor)",
    forms="f",
    grad={("query", "key", "value", "query_rope", "key_rope"): _gradient},
)
def npu_sparse_flash_attention(
    query,
    key,
    value,
    sparse_indices,
    scale_value,
    block_table,
    actual_seq_lengths_query,
    actual_seq_lengths_kv,
    query_rope,
    key_rope,
    sparse_block_size,
    layout_query,
    layout_kv,
    sparse_mode,
    pre_tokens,
    next_tokens,
    attention_mode,
    return_softmax_lse,
):
    """softmax(scale_value * [query, query_rope] @ [key, key_rope]^T) @ value over the chosen keys of each query.

    Args:
        query: (B, S1, N, D) with the layout BSND, or (T1, N, D) with TND. key, value: (B, S2, 1, D) or (T2, 1, D).
        sparse_indices: int32 (B, S1, 1, K) or (T1, 1, K): the blocks of sparse_block_size keys that a query attends to. Negative
            ones are left out.
        query_rope, key_rope: the rotary parts, with a head dim of their own.
        actual_seq_lengths_query, actual_seq_lengths_kv: B lengths; with TND, their running sums.
        sparse_mode: 0 for all chosen keys, or 3 for causal attention, where the last query sees the last key.
        attention_mode: 2, absorbed latent attention. return_softmax_lse: needed for backward.

    Returns:
        (output like query, largest score, sum of exp(score - largest)), the last two in float32 with the shape (B, 1, S1, N) or
        (1, T1, N), or (0,) without return_softmax_lse. A query without a key has the output 0 and the statistics of
        npu_fusion_attention.

    Raises:
        RuntimeError: shapes, lengths or modes do not match.
        NotImplementedError: the keys are in pages, or another attention_mode is asked for.
    """
    check_layout(_NAME, layout_query, layout_kv, block_table=block_table)
    check_modes(_NAME, sparse_mode, pre_tokens, next_tokens)
    _check_mode(_NAME, attention_mode, query_rope, key_rope)
    _check_ropes(_NAME, layout_query, query, key, value, query_rope, key_rope)
    chosen_shape = (*query.shape[:-2], 1, sparse_indices.shape[-1])
    check_shapes(_NAME, layout_query, query, key, sparse_indices=(sparse_indices, chosen_shape))
    if on_ascend(query):
        return ascend(
            "SparseFlashAttention",
            query=query,
            key=key,
            value=value,
            sparse_indices=sparse_indices,
            scale_value=scale_value,
            block_table=None,
            actual_seq_lengths_query=as_tensor(actual_seq_lengths_query, query),
            actual_seq_lengths_kv=as_tensor(actual_seq_lengths_kv, query),
            query_rope=query_rope,
            key_rope=key_rope,
            sparse_block_size=sparse_block_size,
            layout_query=LAYOUTS[layout_query],
            layout_kv=LAYOUTS[layout_kv],
            sparse_mode=sparse_mode,
            pre_tokens=pre_tokens,
            next_tokens=next_tokens,
            attention_mode=attention_mode,
            return_softmax_lse=return_softmax_lse,
        )
    dtype = working(query.dtype)
    out = t.zeros_like(query)
    top, total = (
        query.new_full(query.shape[:-1], n, dtype=msadapter.float32)
        for n in (msadapter.finfo(msadapter.float32).min, 1.0)
    )
    q_all, k_all, v_all = _joined(query, query_rope, dtype), _joined(key, key_rope, dtype), value.to(dtype)
    for one in sequences(_NAME, layout_query, query, key, actual_seq_lengths_query, actual_seq_lengths_kv):
        for rows, q, k, chosen, seen in _blocks(
            one, q_all, k_all, sparse_indices, sparse_mode, sparse_block_size
        ):
            largest, sums = _statistics(q, k, seen, scale_value)
            p = _probabilities(q, k, seen, scale_value, largest, sums)
            out[one.queries][rows] = t.matmul(p, v_all[one.keys].squeeze(-2)[chosen]).to(out.dtype)
            top[one.queries][rows], total[one.queries][rows] = largest.float(), sums.float()
    if not return_softmax_lse:
        return out, top.new_empty(0), top.new_empty(0)
    return out, _heads_in_front(top), _heads_in_front(total)


def _blocks(one: Sequence, q_all, k_all, indices, mode: int, block: int):
    """For each block of queries: (rows, their queries, their chosen keys, the keys' places, whether they are seen)."""
    for rows in one.blocks(q_all.shape[-2] * indices.shape[-1] * block):
        last = one.last_visible(rows, mode, indices.device)
        chosen, seen = _tokens(indices[one.queries][rows].squeeze(-2), last, block)
        yield rows, q_all[one.queries][rows], k_all[one.keys].squeeze(-2)[chosen], chosen, seen


def _recalled(places, q_all, k_all, indices, softmax_max, softmax_sum, scale: float, mode: int, block: int):
    """The blocks of all sequences with the attention's probabilities, which the saved statistics give again.

    Yields (sequence, rows, queries, chosen keys, the keys' places, whether they are seen, probabilities).
    """
    top, total = (x.squeeze(-3).to(q_all.dtype) for x in (softmax_max, softmax_sum))
    for one in places:
        for rows, q, k, chosen, seen in _blocks(one, q_all, k_all, indices, mode, block):
            p = _probabilities(q, k, seen, scale, top[one.queries][rows], total[one.queries][rows])
            yield one, rows, q, k, chosen, seen, p


def _heads_in_front(statistic):
    """(B, S1, N) -> (B, 1, S1, N), or (T1, N) -> (1, T1, N): a dim of one head of keys in front of the queries."""
    return statistic.unsqueeze(-3)


@op(
    "torch_npu.npu_sparse_flash_attention_grad(Tensor query, Tensor key, Tensor value, Tensor sparse_indices, Tensor d_out, "
    "Tensor out, Tensor softmax_max, Tensor softmax_sum, float scale_value, int sparse_block_size, *, Tensor? query_rope=None, "
    "Tensor? key_rope=None, any actual_seq_qlen=None, any actual_seq_kvlen=None, str layout='BSND', int sparse_mode=3, "
    "int pre_tokens=9223372036854775807, int next_tokens=9223372036854775807, int attention_mode=0) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    forms="f",
    grad={
        ("query", "key", "value", "d_out", "out", "query_rope", "key_rope"): no_derivative(
            "npu_sparse_flash_attention_grad"
        )
    },
)
def npu_sparse_flash_attention_grad(
    query,
    key,
    value,
    sparse_indices,
    d_out,
    out,
    softmax_max,
    softmax_sum,
    scale_value,
    sparse_block_size,
    query_rope,
    key_rope,
    actual_seq_qlen,
    actual_seq_kvlen,
    layout,
    sparse_mode,
    pre_tokens,
    next_tokens,
    attention_mode,
):
    """The gradient of npu_sparse_flash_attention.

    Args:
        d_out: the gradient of the output. out, softmax_max, softmax_sum: what the forward returned. The rest is as in
            npu_sparse_flash_attention.

    Returns:
        The gradients of (query, key, value, query_rope, key_rope). Those of absent rotary parts have the shape (0,).

    Raises:
        RuntimeError: shapes, lengths or modes do not match.
        NotImplementedError: another attention_mode is asked for.
    """
    name = f"{_NAME}_grad"
    check_layout(name, layout)
    check_modes(name, sparse_mode, pre_tokens, next_tokens)
    _check_mode(name, attention_mode, query_rope, key_rope)
    _check_ropes(name, layout, query, key, value, query_rope, key_rope)
    _check_saved(name, layout, query, key, sparse_indices, softmax_max, softmax_sum)
    check_shapes(name, layout, query, key, d_out=(d_out, query.shape), out=(out, query.shape))
    if on_ascend(query):
        return ascend(
            "SparseFlashAttentionGrad",
            query=query,
            key=key,
            value=value,
            sparse_indices=sparse_indices,
            d_out=d_out,
            out=out,
            softmax_max=softmax_max,
            softmax_sum=softmax_sum,
            scale_value=scale_value,
            sparse_block_size=sparse_block_size,
            query_rope=query_rope,
            key_rope=key_rope,
            actual_seq_qlen=as_tensor(actual_seq_qlen, query),
            actual_seq_kvlen=as_tensor(actual_seq_kvlen, query),
            layout=LAYOUTS[layout],
            sparse_mode=sparse_mode,
            pre_tokens=pre_tokens,
            next_tokens=next_tokens,
            attention_mode=attention_mode,
        )
    dtype = working(query.dtype)
    q_all, k_all, v_all = _joined(query, query_rope, dtype), _joined(key, key_rope, dtype), value.to(dtype)
    dq, dk, dv = (t.zeros_like(x) for x in (q_all, k_all, v_all))
    places = sequences(name, layout, query, key, actual_seq_qlen, actual_seq_kvlen)
    for one, rows, q, k, chosen, _, p in _recalled(
        places,
        q_all,
        k_all,
        sparse_indices,
        softmax_max,
        softmax_sum,
        scale_value,
        sparse_mode,
        sparse_block_size,
    ):
        g = d_out[one.queries][rows].to(dtype)
        through = t.matmul(g, v_all[one.keys].squeeze(-2)[chosen].transpose(-2, -1))
        own = (g * out[one.queries][rows].to(dtype)).sum(-1, keepdim=True)
        ds = p * (through - own) * scale_value
        dq[one.queries][rows] = t.matmul(ds, k)
        for into, part in ((dk, t.matmul(ds.transpose(-2, -1), q)), (dv, t.matmul(p.transpose(-2, -1), g))):
            into[one.keys].squeeze(-2).index_add_(0, chosen.reshape(-1), part.flatten(0, 1))
    size = query.shape[-1]
    ropes = [
        query.new_empty(0) if rope is None else x[..., size:].to(rope.dtype)
        for rope, x in ((query_rope, dq), (key_rope, dk))
    ]
    return dq[..., :size].to(query.dtype), dk[..., :size].to(key.dtype), dv.to(value.dtype), *ropes


_LOSS = "npu_sparse_lightning_indexer_grad_kl_loss"


@op(
    f"torch_npu.{_LOSS}(Tensor query, Tensor key, Tensor query_index, Tensor key_index, Tensor weights, Tensor sparse_indices, "
    "Tensor softmax_max, Tensor softmax_sum, float scale_value, *, Tensor? query_rope=None, Tensor? key_rope=None, "
    "any actual_seq_qlen=None, any actual_seq_klen=None, str layout='BSND', int sparse_mode=3, "
    "int pre_tokens=9223372036854775807, int next_tokens=9223372036854775807) -> (Tensor, Tensor, Tensor, Tensor)",
    forms="f",
    grad={
        ("query", "key", "query_index", "key_index", "weights", "query_rope", "key_rope"): no_derivative(
            _LOSS
        )
    },
)
def npu_sparse_lightning_indexer_grad_kl_loss(
    query,
    key,
    query_index,
    key_index,
    weights,
    sparse_indices,
    softmax_max,
    softmax_sum,
    scale_value,
    query_rope,
    key_rope,
    actual_seq_qlen,
    actual_seq_klen,
    layout,
    sparse_mode,
    pre_tokens,
    next_tokens,
):
    """The indexer's loss and its gradients: sum over queries of KL(p || softmax(I)), over the chosen keys.

    p is the attention's distribution: its probabilities, summed over the heads and divided by their sum over the chosen keys. I are
    the indexer's scores. The attention's probabilities are rebuilt from softmax_max and softmax_sum, so they are not those of
    the chosen keys alone if the attention saw others.

    Args:
        query, key, query_rope, key_rope, scale_value, softmax_max, softmax_sum: of npu_sparse_flash_attention.
        query_index, key_index, weights: the operands of npu_lightning_indexer. sparse_indices: its result.
        actual_seq_qlen, actual_seq_klen: B lengths; with TND, their running sums.
        sparse_mode: 3, causal. pre_tokens and next_tokens have no effect on it.

    Returns:
        The gradients of (query_index, key_index, weights), and the loss float32 (1,).

    Raises:
        RuntimeError: shapes, lengths or modes do not match.
    """
    check_layout(_LOSS, layout)
    check_modes(_LOSS, sparse_mode, UNBOUNDED, UNBOUNDED)
    _check_mode(_LOSS, ABSORBED, query_rope, key_rope)
    _check_ropes(_LOSS, layout, query, key, key, query_rope, key_rope)
    _check_saved(_LOSS, layout, query, key, sparse_indices, softmax_max, softmax_sum)
    check_shapes(
        _LOSS, layout, query_index, key_index, weights=(weights, (*query.shape[:-2], query_index.shape[-2]))
    )
    gradients = IndexerGradients(query_index, key_index, weights)
    dtype = working(query.dtype)
    q_all, k_all = _joined(query, query_rope, dtype), _joined(key, key_rope, dtype)
    loss = query.new_zeros(1, dtype=gradients.dtype)
    places = sequences(_LOSS, layout, query, key, actual_seq_qlen, actual_seq_klen)
    for one, rows, _, _, chosen, seen, each in _recalled(
        places, q_all, k_all, sparse_indices, softmax_max, softmax_sum, scale_value, sparse_mode, 1
    ):
        p = each.sum(1)
        p = p / p.sum(-1, keepdim=True).masked_fill(~seen.any(-1, keepdim=True), 1)
        block = gradients.block(one, rows, chosen)
        log_of_indexer = t.log_softmax(block.scores.masked_fill(~seen, msadapter.finfo(dtype).min), -1)
        loss += t.xlogy(p, p).sum() - (p * log_of_indexer).masked_fill(~seen, 0).sum()
        gradients.add(block, (t.exp(log_of_indexer) - p).masked_fill(~seen, 0))
    return *gradients.results(), loss.float()
