"""The lightning indexer of DeepSeek-V3.2: for each query it chooses the keys that sparse attention attends to.

The score of a key is the sum over the indexer's heads of weight * relu(query . key), equation 1 of the DeepSeek-V3.2-Exp report. On
the CPU scores are computed for a block of queries at a time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msadapter
from msadapter.ops import gradients_of, on_ascend, op, recording, t

from ._mapping import LAYOUTS, ascend, no_derivative
from .attention_tiles import working
from .sparse_layout import Sequence, as_tensor, check_layout, check_modes, check_shapes, sequences, visible


def index_scores(query, key, weights):
    """The indexer's scores: the sum over its heads of weight * relu(query . key).

    Args:
        query: (rows, heads, size). key: (keys, size), or (rows, keys, size). weights: (rows, heads).

    Returns:
        (products before relu (rows, heads, keys), scores (rows, keys)).
    """
    products = t.matmul(query, key.transpose(-2, -1))
    return products, (t.relu(products) * weights.unsqueeze(-1)).sum(1)


_INDEXER = (
    "Tensor query, Tensor key, Tensor weights, *, any actual_seq_lengths_query=None, any actual_seq_lengths_key=None, "
    "Tensor? block_table=None, str layout_query='BSND', str layout_key='BSND', int sparse_count=2048, int sparse_mode=3, "
    "int pre_tokens=9223372036854775807, int next_tokens=9223372036854775807, bool return_value=False"
)


def _indexer_gradient(
    gs,
    query,
    key,
    weights,
    actual_seq_lengths_query,
    actual_seq_lengths_key,
    layout_query,
    sparse_mode,
    result0,
    needs,
):
    if gs[1] is None:
        return None, None, None
    if recording():
        places = sequences(
            "npu_lightning_indexer",
            layout_query,
            query,
            key,
            actual_seq_lengths_query,
            actual_seq_lengths_key,
        )
        return gradients_of(
            lambda q, k, w: _values(q, k, w, result0, places, sparse_mode),
            (query, key, weights),
            needs,
            gs[1],
        )
    return t.torch_npu_npu_lightning_indexer_grad(
        query,
        key,
        gs[1],
        result0,
        weights,
        actual_seq_lengths_query=actual_seq_lengths_query,
        actual_seq_lengths_key=actual_seq_lengths_key,
        layout=layout_query,
        sparse_mode=sparse_mode,
    )


def _values(query, key, weights, indices, places, mode):
    """The scores of the chosen keys as a differentiable formula. Scores of keys that were not chosen are 0."""
    found = t.zeros_like(indices, dtype=query.dtype)
    for one in filter(lambda one: one.key_count, places):
        rows = slice(0, one.query_count)
        safe, seen = visible(indices[one.queries].squeeze(-2), one.last_visible(rows, mode, query.device))
        scores = index_scores(query[one.queries], key[one.keys].squeeze(-2)[safe], weights[one.queries])[
            1
        ].masked_fill(~seen, 0)
        where = t.zeros_like(found, dtype=msadapter.bool)
        where[one.queries] = True
        found = found.masked_scatter(where, scores)
    return found


@op(
    f"torch_npu.npu_lightning_indexer({_INDEXER}) -> (Tensor, Tensor)",
    forms="f",
    grad={("query", "key", "weights"): _indexer_gradient},
)
def npu_lightning_indexer(
    query,
    key,
    weights,
    actual_seq_lengths_query,
    actual_seq_lengths_key,
    block_table,
    layout_query,
    layout_key,
    sparse_count,
    sparse_mode,
    pre_tokens,
    next_tokens,
    return_value,
):
    """Chooses the keys with the largest scores for each query. A score is the sum over heads of weight * relu(query . key).

    Args:
        query: (B, S1, N, D) with the layout BSND, or (T1, N, D) with TND. key: (B, S2, 1, D) or (T2, 1, D).
        weights: (B, S1, N) or (T1, N).
        actual_seq_lengths_query, actual_seq_lengths_key: B lengths; with TND, their running sums.
        sparse_count: how many keys are chosen for a query.
        sparse_mode: 0 for all keys, or 3 for causal attention, where the last query sees the last key.

    Returns:
        (chosen keys int32 (B, S1, 1, sparse_count) or (T1, 1, sparse_count), their scores in query's dtype in falling order).
        Where there are fewer visible keys, the rest is -1 with a score of minus infinity. Without return_value the scores have
        the shape (0,).

    Raises:
        RuntimeError: shapes, lengths or modes do not match.
        NotImplementedError: the keys are in pages.
    """
    name = "npu_lightning_indexer"
    check_layout(name, layout_query, layout_key, block_table=block_table)
    check_modes(name, sparse_mode, pre_tokens, next_tokens)
    check_shapes(name, layout_query, query, key, weights=(weights, query.shape[:-1]))
    if sparse_count < 1:
        raise RuntimeError(f"{name}: sparse_count must be positive, but got {sparse_count}")
    if on_ascend(query):
        return ascend(
            "LightningIndexer",
            query=query,
            key=key,
            weights=weights,
            actual_seq_lengths_query=as_tensor(actual_seq_lengths_query, query),
            actual_seq_lengths_key=as_tensor(actual_seq_lengths_key, query),
            block_table=None,
            layout_query=LAYOUTS[layout_query],
            layout_key=LAYOUTS[layout_key],
            sparse_count=sparse_count,
            sparse_mode=sparse_mode,
            pre_tokens=pre_tokens,
            next_tokens=next_tokens,
            return_value=return_value,
        )
    dtype = working(query.dtype)
    shape = (*query.shape[:-2], 1, sparse_count)
    indices = query.new_full(shape, -1, dtype=msadapter.int32)
    values = query.new_full(shape, float("-inf"))
    for one in sequences(name, layout_query, query, key, actual_seq_lengths_query, actual_seq_lengths_key):
        q, w, keys = query[one.queries], weights[one.queries], key[one.keys].squeeze(-2).to(dtype)
        count = min(sparse_count, one.key_count)
        for rows in one.blocks(q.shape[-2] * one.key_count):
            last = one.last_visible(rows, sparse_mode, query.device)
            scores = index_scores(q[rows].to(dtype), keys, w[rows].to(dtype))[1]
            scores = scores.masked_fill(
                msadapter.arange(one.key_count, device=query.device) > last, float("-inf")
            )
            best, places = scores.topk(count, -1)
            indices[one.queries][rows, 0, :count] = places.masked_fill(places > last, -1).to(msadapter.int32)
            values[one.queries][rows, 0, :count] = best.to(query.dtype)
    return indices, values if return_value else values.new_empty(0)


@op(
    "torch_npu.npu_lightning_indexer_grad(Tensor query, Tensor key, Tensor dy, Tensor sparse_indices, Tensor weights, *, "
    "any actual_seq_lengths_query=None, any actual_seq_lengths_key=None, str layout='BSND', int sparse_mode=3, "
    "int pre_tokens=9223372036854775807, int next_tokens=9223372036854775807) -> (Tensor, Tensor, Tensor)",
    forms="f",
    grad={("query", "key", "dy", "weights"): no_derivative("npu_lightning_indexer_grad")},
)
def npu_lightning_indexer_grad(
    query,
    key,
    dy,
    sparse_indices,
    weights,
    actual_seq_lengths_query,
    actual_seq_lengths_key,
    layout,
    sparse_mode,
    pre_tokens,
    next_tokens,
):
    """The gradient of npu_lightning_indexer's scores.

    Args:
        dy: the gradient of the scores. sparse_indices: the chosen keys. The rest is as in npu_lightning_indexer.

    Returns:
        The gradients of (query, key, weights).

    Raises:
        RuntimeError: shapes, lengths or modes do not match.
    """
    name = "npu_lightning_indexer_grad"
    check_layout(name, layout)
    check_modes(name, sparse_mode, pre_tokens, next_tokens)
    chosen = (*query.shape[:-2], 1, sparse_indices.shape[-1])
    check_shapes(
        name,
        layout,
        query,
        key,
        weights=(weights, query.shape[:-1]),
        dy=(dy, chosen),
        sparse_indices=(sparse_indices, chosen),
    )
    if on_ascend(query):
        return ascend(
            "LightningIndexerGrad",
            query=query,
            key=key,
            dy=dy,
            sparse_indices=sparse_indices,
            weights=weights,
            actual_seq_lengths_query=as_tensor(actual_seq_lengths_query, query),
            actual_seq_lengths_key=as_tensor(actual_seq_lengths_key, query),
            layout=LAYOUTS[layout],
            sparse_mode=sparse_mode,
            pre_tokens=pre_tokens,
            next_tokens=next_tokens,
        )
    gradients = IndexerGradients(query, key, weights)
    for one in sequences(name, layout, query, key, actual_seq_lengths_query, actual_seq_lengths_key):
        for rows in one.blocks(query.shape[-2] * sparse_indices.shape[-1]):
            last = one.last_visible(rows, sparse_mode, query.device)
            chosen, seen = visible(sparse_indices[one.queries][rows].squeeze(-2), last)
            grad = dy[one.queries][rows].squeeze(-2).to(gradients.dtype).masked_fill(~seen, 0)
            gradients.add(gradients.block(one, rows, chosen), grad)
    return gradients.results()


class IndexerBlock(NamedTuple):
    """The indexer's scores of the keys that were chosen for a block of queries, and what they are made of."""

    sequence: Sequence
    rows: slice
    chosen: Any  # places of keys (rows, chosen)
    query: Any
    key: Any
    weights: Any
    products: Any  # before relu (rows, heads, chosen)
    scores: Any  # (rows, chosen)


class IndexerGradients:
    """Collects the gradients of the indexer's operands, block by block."""

    def __init__(self, query, key, weights):
        self.dtype = working(query.dtype)
        self._operands = query, key, weights
        self._found = [t.zeros_like(x, dtype=self.dtype) for x in self._operands]

    def block(self, one: Sequence, rows: slice, chosen) -> IndexerBlock:
        """The scores of a block of queries, in the dtype of the computation."""
        q, k, w = self._operands
        q, w = q[one.queries][rows].to(self.dtype), w[one.queries][rows].to(self.dtype)
        k = k[one.keys].squeeze(-2)[chosen].to(self.dtype)
        return IndexerBlock(one, rows, chosen, q, k, w, *index_scores(q, k, w))

    def add(self, block: IndexerBlock, grad) -> None:
        """Adds what a block contributes. `grad` (rows, chosen) is 0 for keys that its query does not see."""
        one, rows, q = block.sequence, block.rows, block.query
        grad = grad.unsqueeze(1)
        through = block.weights.unsqueeze(-1) * grad * (block.products > 0)
        self._found[0][one.queries][rows] += t.matmul(through, block.key)
        self._found[2][one.queries][rows] += (t.relu(block.products) * grad).sum(-1)
        of_keys = t.matmul(through.transpose(-2, -1), q)
        self._found[1][one.keys].squeeze(-2).index_add_(0, block.chosen.reshape(-1), of_keys.flatten(0, 1))

    def results(self) -> tuple:
        return tuple(x.to(operand.dtype) for x, operand in zip(self._found, self._operands, strict=True))
