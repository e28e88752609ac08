"""Views npu_fusion_attention's layouts as (B, N, S, D); a packed batch has one such view per sequence."""

from __future__ import annotations

from dataclasses import dataclass

LAYOUTS = ("BSH", "SBH", "BSND", "BNSD", "TND")
_RANK = {"BSH": 3, "SBH": 3, "BSND": 4, "BNSD": 4, "TND": 3}


@dataclass(frozen=True)
class Sizes:
    """The sizes of a call: batch, heads, lengths and head sizes; for a packed batch also each sequence's lengths."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    lengths: tuple[tuple[int, int], ...] | None = None  # TND

    @property
    def scores(self) -> int:
        """The total number of scores, which is the length of the dropout mask."""
        pairs = self.lengths or ((self.queries, self.keys),) * self.batch
        return self.heads * sum(q * k for q, k in pairs)


def heads_first(x, layout: str, heads: int):
    """The tensor as (B, N, S, D), as a view where the layout allows it. TND becomes (1, N, T, D)."""
    if layout == "BNSD":
        return x
    if layout == "BSND":
        return x.transpose(1, 2)
    if layout == "TND":
        return x.transpose(0, 1).unsqueeze(0)
    a, b, hidden = x.shape
    x = x.reshape(a, b, heads, hidden // heads)
    return x.transpose(1, 2) if layout == "BSH" else x.permute(1, 2, 0, 3)


def sizes_of(query, key, value, heads: int, layout: str, qlen, kvlen) -> Sizes:
    """Checks the shapes of a call and returns its sizes.

    Raises:
        RuntimeError: the layout is unknown, or numbers of dimensions, heads or lengths do not match.
    """
    if layout not in LAYOUTS:
        raise RuntimeError(
            f"npu_fusion_attention: input_layout must be one of {', '.join(LAYOUTS)}, but got {layout}"
        )
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.dim() != _RANK[layout]:
            raise RuntimeError(
                f"npu_fusion_attention: {name} must have {_RANK[layout]} dimensions in layout {layout}, but got "
                f"{list(x.shape)}"
            )
    if not query.dtype == key.dtype == value.dtype or not query.is_floating_point():
        raise RuntimeError(
            "npu_fusion_attention: query, key and value must have one floating point dtype, but got "
            f"{query.dtype}, {key.dtype} and {value.dtype}"
        )
    if layout in ("BSH", "SBH"):
        kv_heads = _heads_of_flat(query, key, value, heads)
    else:
        axis = 1 if layout in ("BNSD", "TND") else 2
        kv_heads = key.shape[axis]
        if query.shape[axis] != heads or value.shape[axis] != kv_heads or query.shape[-1] != key.shape[-1]:
            raise RuntimeError(
                f"npu_fusion_attention: head_num {heads} in layout {layout} does not fit query {list(query.shape)}, "
                f"key {list(key.shape)} and value {list(value.shape)}"
            )
    if kv_heads == 0 or heads % kv_heads:
        raise RuntimeError(
            f"npu_fusion_attention: the {heads} heads of query must be a multiple of the {kv_heads} of key"
        )
    if layout == "TND":
        return _packed(query, key, value, heads, kv_heads, qlen, kvlen)
    batch_axis, length_axis = {"BSH": (0, 1), "SBH": (1, 0), "BSND": (0, 1), "BNSD": (0, 2)}[layout]
    batches = {x.shape[batch_axis] for x in (query, key, value)}
    if len(batches) != 1 or key.shape[length_axis] != value.shape[length_axis]:
        raise RuntimeError(
            f"npu_fusion_attention: batch sizes and lengths differ: query {list(query.shape)}, key "
            f"{list(key.shape)}, value {list(value.shape)} in layout {layout}"
        )
    return Sizes(batches.pop(), heads, kv_heads, query.shape[length_axis], key.shape[length_axis])


def _heads_of_flat(query, key, value, heads: int) -> int:
    hidden = query.shape[-1]
    if heads <= 0 or hidden % heads:
        raise RuntimeError(
            f"npu_fusion_attention: head_num {heads} does not divide the hidden size {hidden} of query"
        )
    size = hidden // heads
    kv_heads, rest = divmod(key.shape[-1], size)
    if rest or not kv_heads or value.shape[-1] % kv_heads:
        raise RuntimeError(
            f"npu_fusion_attention: key {list(key.shape)} and value {list(value.shape)} do not hold a whole number "
            f"of heads of size {size}"
        )
    return kv_heads


def _packed(query, key, value, heads: int, kv_heads: int, qlen, kvlen) -> Sizes:
    if qlen is None or kvlen is None:
        raise RuntimeError(
            "npu_fusion_attention: input_layout TND needs actual_seq_qlen and actual_seq_kvlen"
        )
    ends = [[int(n) for n in (x.tolist() if hasattr(x, "tolist") else x)] for x in (qlen, kvlen)]
    for name, have, total in (
        ("actual_seq_qlen", ends[0], len(query)),
        ("actual_seq_kvlen", ends[1], len(key)),
    ):
        if (
            not have
            or have[0] < 0
            or any(b < a for a, b in zip(have, have[1:], strict=False))
            or have[-1] > total
        ):
            raise RuntimeError(
                f"npu_fusion_attention: {name} must hold the ends of the sequences in ascending order, the last at most "
                f"{total} (the number of tokens), but got {have}"
            )
    if len(ends[0]) != len(ends[1]) or len(key) != len(value):
        raise RuntimeError(
            f"npu_fusion_attention: actual_seq_qlen and actual_seq_kvlen must have the same length, but have "
            f"{len(ends[0])} and {len(ends[1])} entries"
        )
    lengths = tuple(
        (q - q0, k - k0) for q, q0, k, k0 in zip(ends[0], [0, *ends[0]], ends[1], [0, *ends[1]], strict=False)
    )
    return Sizes(len(lengths), heads, kv_heads, len(query), len(key), lengths)
