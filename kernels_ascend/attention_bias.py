"""The position bias (pse) of npu_fusion_attention per tile: a full tensor, compressed ALiBi, or ALiBi from slopes."""

from __future__ import annotations

import msadapter

from .attention_layout import Sizes
from .attention_masks import ALL, BAND, FULL, LEFT_UP, RIGHT_DOWN
from .attention_tiles import Tile, _part, working

AFTER_SCALE, BEFORE_SCALE, ALIBI, ALIBI_ROOT = range(4)
COMPRESSED_ROWS = 1024


def check(pse, pse_type: int, sizes: Sizes, dtype) -> None:
    """Raises RuntimeError if pse does not match its type and the sizes of the call."""
    if not 0 <= pse_type <= 3:
        raise RuntimeError(f"npu_fusion_attention: pse_type must be from 0 to 3, but got {pse_type}")
    if pse is None:
        if pse_type in (ALIBI, ALIBI_ROOT):
            raise RuntimeError(
                f"npu_fusion_attention: pse_type {pse_type} needs pse with the slope of each head"
            )
        return
    shape, n = tuple(pse.shape), sizes.heads
    if pse_type in (ALIBI, ALIBI_ROOT):
        if shape not in ((n,), (sizes.batch, n)) or pse.dtype != msadapter.float32:
            raise RuntimeError(
                f"npu_fusion_attention: with pse_type {pse_type} pse must be float32 slopes of shape [{n}] or "
                f"[{sizes.batch}, {n}], but got {pse.dtype} of {list(shape)}"
            )
        return
    if pse.dtype != dtype:
        raise RuntimeError(
            f"npu_fusion_attention: pse must have the dtype of query, {dtype}, but got {pse.dtype}"
        )
    rows = {COMPRESSED_ROWS} if sizes.lengths else {sizes.queries, 1, COMPRESSED_ROWS}
    keys = sizes.keys if not sizes.lengths else (shape[3] if len(shape) == 4 else -1)
    if (
        len(shape) != 4
        or shape[0] not in (1, sizes.batch)
        or shape[1] != n
        or shape[2] not in rows
        or shape[3] != keys
    ):
        raise RuntimeError(
            f"npu_fusion_attention: pse of shape {list(shape)} does not fit {sizes.batch} batches of {n} heads, "
            f"{sizes.queries} queries and {sizes.keys} keys"
        )


def is_compressed(pse, sizes: Sizes) -> bool:
    """True if pse contains only the last rows of an ALiBi bias."""
    return (
        pse is not None
        and pse.dim() == 4
        and pse.shape[2] == COMPRESSED_ROWS
        and (sizes.lengths is not None or sizes.queries != COMPRESSED_ROWS)
    )


def check_causal(pse, mask, mode: int, following: int, sizes: Sizes) -> None:
    """Checks that no query sees a key after itself, because compressed rows have no bias for such keys.

    Raises:
        RuntimeError: the numbers of queries and keys differ, or a key after the diagonal is visible.
    """
    lengths = sizes.lengths or ((sizes.queries, sizes.keys),)
    if any(q and k and q != k for q, k in lengths):
        raise RuntimeError(
            f"npu_fusion_attention: a compressed pse needs as many keys as queries, but got (queries, keys) {list(lengths)}"
        )
    if max((k for _, k in lengths), default=0) > pse.shape[3]:
        raise RuntimeError(
            f"npu_fusion_attention: the compressed pse has {pse.shape[3]} keys, but (queries, keys) are {list(lengths)}"
        )
    if mask is not None and mode in (LEFT_UP, RIGHT_DOWN):
        return
    if mask is not None and mode in (FULL, BAND) and following <= 0:
        return
    if mask is None or mode not in (FULL, ALL) or not bool(((mask != 0) | _lower(mask)).all()):
        raise RuntimeError(
            "npu_fusion_attention: a compressed pse has no values for keys above the diagonal: pass sparse_mode 2 or 3, "
            "or an atten_mask that hides these keys"
        )


def _lower(mask):
    """True where a key is not after its query."""
    return msadapter.ones(mask.shape[-2:], dtype=msadapter.bool, device=mask.device).tril()


class Bias:
    """A callable that returns the bias of a tile, which is added to the scaled scores.

    Args:
        pse, pse_type, scale: the arguments of the call. q_start, kv_start: shifts of the ALiBi pattern.
        sequence: the index of the sequence in a packed batch; None for a dense one.
    """

    def __init__(
        self, pse, pse_type: int, scale: float, queries: int, q_start: int, kv_start: int, sequence=None
    ):
        self.pse_type, self.shift = pse_type, q_start - kv_start
        self.factor = scale if pse_type == BEFORE_SCALE else 1.0
        if sequence is not None and pse.dim() > 1 and pse.shape[0] > 1:
            pse = pse[sequence : sequence + 1]
        self.pse = pse
        self.compressed = (
            pse.dim() == 4
            and pse.shape[2] == COMPRESSED_ROWS
            and (sequence is not None or queries != COMPRESSED_ROWS)
        )
        self.sum: msadapter.Tensor | None = None

    def __call__(self, tile: Tile):
        if self.pse_type in (ALIBI, ALIBI_ROOT):
            return self._alibi(tile)
        if self.compressed:
            found = self._unpacked(tile)
        else:
            found = _part(self.pse, tile.b, tile.n, tile.rows, tile.columns)
        return found.to(working(found.dtype)) * self.factor

    def _distance(self, tile: Tile, shift: int):
        i = msadapter.arange(tile.rows.start, tile.rows.stop, device=self.pse.device).unsqueeze(1)
        j = msadapter.arange(tile.columns.start, tile.columns.stop, device=self.pse.device)
        return i - j + shift

    def _alibi(self, tile: Tile):
        distance = self._distance(tile, self.shift).abs().to(msadapter.float32)
        if self.pse_type == ALIBI_ROOT:
            distance = distance.sqrt()
        slopes = self.pse if self.pse.dim() == 2 else self.pse.unsqueeze(0)
        return _part(slopes, tile.b, tile.n)[:, :, None, None] * -distance

    def _unpacked(self, tile: Tile):
        """The bias of a tile from compressed rows. Row i is the last row, shifted, because ALiBi depends only on i - j."""
        last = _part(self.pse, tile.b, tile.n)[:, :, -1]
        place = (last.shape[-1] - 1 - self._distance(tile, 0)).clamp(0, last.shape[-1] - 1)
        return last[:, :, place]

    def gradient(self, tile: Tile, ds) -> None:
        """Adds the gradient `ds` of the tile's scores to `sum`, the gradient of pse."""
        if self.sum is None:
            self.sum = msadapter.zeros(self.pse.shape, dtype=ds.dtype, device=ds.device)
        ds = ds * self.factor
        if self.sum.shape[0] == 1:
            ds = ds.sum(0, keepdim=True)
        if self.sum.shape[2] == 1:
            ds = ds.sum(2, keepdim=True)
        _part(self.sum, tile.b, tile.n, tile.rows, tile.columns).add_(ds)

    def formula(self, queries: int, keys: int):
        """The complete bias as a differentiable tensor."""
        whole = slice(0, queries), slice(0, keys)
        batches, heads = (
            slice(0, self.pse.shape[0]),
            slice(0, self.pse.shape[-1 if self.pse.dim() < 3 else 1]),
        )
        return self(Tile(0, batches, heads, heads, *whole))


__all__ = ["ALIBI", "ALIBI_ROOT", "AFTER_SCALE", "BEFORE_SCALE", "Bias", "check"]
