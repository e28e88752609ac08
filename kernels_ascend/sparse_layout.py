"""What the operators of sparse attention share: where sequences lie in a batch, and checks of their arguments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msadapter
from msadapter.ops import t

UNBOUNDED = 2**63 - 1
ALL, CAUSAL = 0, 3
BLOCK = 2**22  # the number of scores that are computed at once


@dataclass(frozen=True)
class Sequence:
    """Where the queries and the keys of one sequence are: indices into the dims in front of the heads."""

    queries: tuple
    keys: tuple
    query_count: int
    key_count: int

    def last_visible(self, rows: slice, mode: int, device):
        """The last key that each query of a block may see, of shape (rows, 1)."""
        position = msadapter.arange(rows.start, rows.stop, device=device).unsqueeze(-1)
        if mode == ALL:
            return t.full_like(position, self.key_count - 1)
        return position + (self.key_count - self.query_count)

    def blocks(self, scores_per_query: int) -> Iterator[slice]:
        """Ranges of queries that have at most BLOCK scores together, and at least one query. Without keys there are none."""
        if not self.key_count:
            return
        step = max(1, BLOCK // max(1, scores_per_query))
        for start in range(0, self.query_count, step):
            yield slice(start, min(start + step, self.query_count))


def _ends(name: str, what: str, given, count: int, limit: int) -> list[int]:
    """The lengths as numbers: `count` of them, none above `limit`."""
    values = [int(v) for v in (given.tolist() if isinstance(given, msadapter.Tensor) else given)]
    if len(values) != count or any(not 0 <= v <= limit for v in values):
        raise RuntimeError(
            f"{name}: {what} must have {count} lengths between 0 and {limit}, but it is {values}"
        )
    return values


def sequences(name: str, layout: str, query, key, qlen, klen) -> list[Sequence]:
    """The sequences of a batch. With TND, `qlen` and `klen` are the running sums of their lengths."""
    if layout == "BSND":
        batch, rows, columns = query.shape[0], query.shape[1], key.shape[1]
        q = [rows] * batch if qlen is None else _ends(name, "actual_seq_lengths_query", qlen, batch, rows)
        k = [columns] * batch if klen is None else _ends(name, "actual_seq_lengths_key", klen, batch, columns)
        return [
            Sequence((b, slice(0, m)), (b, slice(0, n)), m, n)
            for b, (m, n) in enumerate(zip(q, k, strict=True))
        ]
    if qlen is None or klen is None:
        raise RuntimeError(f"{name}: the layout TND needs the lengths of queries and keys")
    q = _ends(name, "actual_seq_lengths_query", qlen, len(qlen), query.shape[0])
    k = _ends(name, "actual_seq_lengths_key", klen, len(q), key.shape[0])
    if q != sorted(q) or k != sorted(k):
        raise RuntimeError(f"{name}: lengths of the layout TND are running sums and must not decrease")
    starts = zip([0, *q], q, [0, *k], k, strict=False)
    return [Sequence((slice(a, b),), (slice(c, d),), b - a, d - c) for a, b, c, d in starts]


def check_layout(name: str, layout: str, *others: str, block_table=None) -> None:
    if block_table is not None:
        raise NotImplementedError(
            f"{name}: block_table, of a cache of pages, is not supported (docs/coverage.md)"
        )
    if layout not in ("BSND", "TND") or any(one != layout for one in others):
        raise NotImplementedError(
            f"{name}: layouts must be BSND, or TND, for queries and keys alike, but got {', '.join((layout, *others))}; a cache of "
            "pages (PA_BSND) is not supported (docs/coverage.md)"
        )


def check_modes(name: str, mode: int, before: int, after: int) -> None:
    if mode not in (ALL, CAUSAL):
        raise RuntimeError(f"{name}: sparse_mode must be 0 (all keys) or 3 (causal), but got {mode}")
    if before != UNBOUNDED or after != UNBOUNDED:
        raise RuntimeError(f"{name}: pre_tokens and next_tokens must have their default 2^63-1")


def check_shapes(name: str, layout: str, query, key, **others) -> None:
    """Queries and keys have one head dim, keys have one head, and the others have the dims that follow from the queries."""
    dims = 4 if layout == "BSND" else 3
    if query.dim() != dims or key.dim() != dims or key.shape[-2] != 1 or query.shape[-1] != key.shape[-1]:
        raise RuntimeError(
            f"{name}: with the layout {layout} query and key must have {dims} dims, one head of keys and one size of heads, but "
            f"their shapes are {list(query.shape)} and {list(key.shape)}"
        )
    if layout == "BSND" and query.shape[0] != key.shape[0]:
        raise RuntimeError(f"{name}: query has {query.shape[0]} sequences and key has {key.shape[0]}")
    for what, (tensor, shape) in others.items():
        if tensor is not None and list(tensor.shape) != list(shape):
            raise RuntimeError(
                f"{name}: {what} must have the shape {list(shape)}, but its shape is {list(tensor.shape)}"
            )


def as_tensor(lengths, like):
    """Lengths as MindSpore's operators take them."""
    if lengths is None or isinstance(lengths, msadapter.Tensor):
        return lengths
    return msadapter.tensor(list(lengths), dtype=msadapter.int32, device=like.device)


def visible(indices, last):
    """(indices without negative ones, whether the query sees them). Both have the shape (rows, chosen)."""
    return indices.clamp(min=0).long(), (indices >= 0) & (indices <= last)
