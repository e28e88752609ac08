"""Flash attention by tiles, made of table operators. Memory grows linearly with the length of the sequences.

All tensors here are (B, N, S, D). A tile is a range of batches, key heads and rows of scores. Forward and backward use the
same tiles, so that backward can draw a tile's dropout again from the same seed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msadapter
from msadapter.ops import t

from .attention_masks import Visible

TILE = 1 << 21  # number of scores per tile
ROWS = 256
_LOWEST = -3.4028234663852886e38  # softmax_max of a query that sees no key


@dataclass
class Dense:
    """An attention problem with sequences of equal length, where `group` heads of query share one head of key."""

    query: msadapter.Tensor
    key: msadapter.Tensor
    value: msadapter.Tensor
    visible: list[Visible]  # one for all batches, or one per batch
    mask: msadapter.Tensor | None = None  # (B or 1, N or 1, Sq, Skv), true where hidden
    bias: Callable | None = None  # called with a tile; returns what is added to its scaled scores
    scale: float = 1.0
    keep: float = 1.0
    seed: int = 0  # dropout seed, to which each tile adds its number

    @property
    def group(self) -> int:
        return self.query.shape[1] // self.key.shape[1]


@dataclass(frozen=True)
class Tile:
    """A part of the scores: ranges of batches, key heads, query heads, rows and columns."""

    number: int
    b: slice
    kv: slice
    n: slice
    rows: slice
    columns: slice


def tiles(p: Dense) -> Iterator[Tile]:
    """Yields the tiles of a problem, with rows in the innermost loop. For rows that see no key the columns are empty."""
    batch, _, queries, _ = p.query.shape
    kv_heads, keys = p.key.shape[1:3]
    if not queries:
        return
    rows = min(queries, ROWS)
    per_head = max(1, rows * keys * p.group)
    heads = max(1, min(kv_heads, TILE // per_head))
    batches = 1 if len(p.visible) > 1 or heads < kv_heads else max(1, TILE // (per_head * kv_heads))
    number = 0
    for b in range(0, batch, batches):
        sees = p.visible[b if len(p.visible) > 1 else 0]
        for h in range(0, kv_heads, heads):
            h_end = min(h + heads, kv_heads)
            for i in range(0, queries, rows):
                low, high = sees.columns(i, min(i + rows, queries), keys)
                yield Tile(
                    number,
                    slice(b, min(b + batches, batch)),
                    slice(h, h_end),
                    slice(h * p.group, h_end * p.group),
                    slice(i, min(i + rows, queries)),
                    slice(min(low, high), high),
                )
                number += 1


def working(dtype):
    """The dtype in which tensors of `dtype` are computed."""
    return dtype if dtype == msadapter.float64 else msadapter.float32


def _range(s: slice) -> tuple[int, int]:
    return s.start, s.stop


def _part(x, *ranges: slice):
    """x[ranges], except that dimensions of size 1 are not cut."""
    for dim, r in enumerate(ranges):
        if x.shape[dim] != 1:
            x = x.narrow(dim, r.start, r.stop - r.start)
    return x


def _grouped(x, group: int):
    """Reshapes (B, K * group, S, D) to (B, K, group * S, D), so heads that share a key head become rows."""
    if group == 1:
        return x
    b, n, s, d = x.shape
    return x.reshape(b, n // group, group * s, d)


def _ungrouped(x, group: int):
    if group == 1:
        return x
    b, k, rows, d = x.shape
    return x.reshape(b, k * group, rows // group, d)


def _scores(p: Dense, tile: Tile, query, key):
    """The scaled scores of a tile with the bias, and -inf for hidden keys."""
    s = _ungrouped(t.matmul(query, key.transpose(-2, -1)), p.group) * p.scale
    if p.bias is not None:
        s = s + p.bias(tile)
    sees = p.visible[tile.b.start if len(p.visible) > 1 else 0]
    hidden = sees.hidden(_range(tile.rows), _range(tile.columns), s.device)
    if p.mask is not None:
        own = _part(p.mask, tile.b, tile.n, tile.rows, tile.columns)
        hidden = own if hidden is None else hidden | own
    return s if hidden is None else s.masked_fill(hidden, float("-inf"))


def _kept(p: Dense, tile: Tile, like):
    """The dropout factors of the tile, 0 or 1 / keep; None without dropout."""
    if p.keep >= 1.0:
        return None
    source = msadapter.Generator(device=like.device).manual_seed((p.seed + tile.number) % (1 << 63))
    drawn = msadapter.rand(like.shape, generator=source, device=like.device)
    return (drawn < p.keep).to(like.dtype) / p.keep


def forward(p: Dense, out, softmax_max, softmax_sum) -> None:
    """Writes the attention to `out` (B, N, Sq, Dv), and the rows' maxima and sums to softmax_max, softmax_sum (B, N, Sq)."""
    dtype = working(p.query.dtype)
    held = None
    for tile in tiles(p):
        if tile.columns.start == tile.columns.stop:
            out[tile.b, tile.n, tile.rows] = 0
            softmax_max[tile.b, tile.n, tile.rows] = _LOWEST
            softmax_sum[tile.b, tile.n, tile.rows] = 1
            continue
        if held is None or held[0] != (tile.b, tile.kv):
            held = ((tile.b, tile.kv), p.key[tile.b, tile.kv].to(dtype), p.value[tile.b, tile.kv].to(dtype))
        query = _grouped(p.query[tile.b, tile.n, tile.rows].to(dtype), p.group)
        s = _scores(p, tile, query, held[1][:, :, tile.columns])
        top = s.amax(-1, keepdim=True).clamp(min=_LOWEST)
        weights = t.exp(s - top)
        total = weights.sum(-1, keepdim=True)
        nothing = top == _LOWEST
        total = total.masked_fill(nothing, 1.0)
        factors = _kept(p, tile, weights)
        weights = weights if factors is None else weights * factors
        found = _ungrouped(t.matmul(_grouped(weights, p.group), held[2][:, :, tile.columns]), p.group) / total
        out[tile.b, tile.n, tile.rows] = found.to(out.dtype)
        softmax_max[tile.b, tile.n, tile.rows] = top.squeeze(-1)
        softmax_sum[tile.b, tile.n, tile.rows] = total.squeeze(-1)


def backward(
    p: Dense, out, softmax_max, softmax_sum, grad, into, bias_gradient: Callable | None = None
) -> None:
    """Writes the gradients of query, key and value to the three tensors `into`.

    `out` and `grad` are (B, N, Sq, Dv), the maxima and sums (B, N, Sq). They belong to complete rows, even if `key` is only
    a part of the keys (ring attention). bias_gradient(tile, ds) is called with the gradient of the scaled scores.
    """
    dtype = working(p.query.dtype)
    grad_query, grad_key, grad_value = into
    sum_key, sum_value = (msadapter.zeros(x.shape, dtype=dtype, device=x.device) for x in (p.key, p.value))
    held = None
    for tile in tiles(p):
        if tile.columns.start == tile.columns.stop:
            grad_query[tile.b, tile.n, tile.rows] = 0
            continue
        if held is None or held[0] != (tile.b, tile.kv):
            held = ((tile.b, tile.kv), p.key[tile.b, tile.kv].to(dtype), p.value[tile.b, tile.kv].to(dtype))
        key, value = held[1][:, :, tile.columns], held[2][:, :, tile.columns]
        query = _grouped(p.query[tile.b, tile.n, tile.rows].to(dtype), p.group)
        g = grad[tile.b, tile.n, tile.rows].to(dtype)
        top = softmax_max[tile.b, tile.n, tile.rows].unsqueeze(-1)
        total = softmax_sum[tile.b, tile.n, tile.rows].unsqueeze(-1)
        weights = t.exp(_scores(p, tile, query, key) - top) / total
        inner = (g * out[tile.b, tile.n, tile.rows].to(dtype)).sum(-1, keepdim=True)
        g = _grouped(g, p.group)
        back = _ungrouped(t.matmul(g, value.transpose(-2, -1)), p.group)
        factors = _kept(p, tile, weights)
        ds = weights * ((back if factors is None else back * factors) - inner)
        if bias_gradient is not None:
            bias_gradient(tile, ds)
        ds = _grouped(ds * p.scale, p.group)
        grad_query[tile.b, tile.n, tile.rows] = _ungrouped(t.matmul(ds, key), p.group).to(grad_query.dtype)
        dropped = _grouped(weights if factors is None else weights * factors, p.group)
        sum_key[tile.b, tile.kv, tile.columns] += t.matmul(ds.transpose(-2, -1), query)
        sum_value[tile.b, tile.kv, tile.columns] += t.matmul(dropped.transpose(-2, -1), g)
    grad_key.copy_(sum_key)
    grad_value.copy_(sum_value)
