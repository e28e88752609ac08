"""Determines which keys a query sees: converts npu_fusion_attention's sparse modes to bands, and checks masks.

A mask is true where a key is hidden. Modes 2 to 4 and 6 to 8 define the pattern themselves, and the device requires one
fixed "compressed" mask with them. Any other mask would be ignored silently on the device, so it is refused here.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import msadapter

SIDE = 2048  # side of the compressed mask
PREFIX_ROWS = 3072  # number of rows of the compressed mask of mode 6
FULL, ALL, LEFT_UP, RIGHT_DOWN, BAND, PREFIX, PREFIX_COMPRESSED, VARLEN_LAST_BAND, VARLEN_FIRST_BAND = range(
    9
)
COMPRESSED = (LEFT_UP, RIGHT_DOWN, BAND, PREFIX_COMPRESSED, VARLEN_LAST_BAND, VARLEN_FIRST_BAND)


@dataclass(frozen=True)
class Visible:
    """Query i sees key j if i - left <= j <= i + right (None means no bound) or j < prefix."""

    left: int | None = None
    right: int | None = None
    prefix: int = 0

    def columns(self, first: int, last: int, keys: int) -> tuple[int, int]:
        """The range of keys that contains all keys seen by the queries first to last - 1."""
        low = 0 if self.left is None or self.prefix else max(0, first - self.left)
        high = keys if self.right is None else min(keys, max(last + self.right, self.prefix))
        return min(low, keys), max(high, 0)

    def hidden(self, rows: tuple[int, int], columns: tuple[int, int], device):
        """The mask of the given rows and columns, true where hidden; None if nothing is hidden."""
        (i0, i1), (j0, j1) = rows, columns
        right = self.right is not None and j1 - 1 > i0 + self.right
        left = self.left is not None and j0 < i1 - 1 - self.left
        if not right and not left:
            return None
        i = msadapter.arange(i0, i1, device=device).unsqueeze(1)
        j = msadapter.arange(j0, j1, device=device)
        mask = j > i + self.right if right else None
        if left:
            before = j < i - self.left
            mask = before if mask is None else mask | before
        return mask & (j >= self.prefix) if self.prefix else mask


EVERYTHING = Visible()


def visible(mode: int, queries: int, keys: int, pre: int, following: int, has_mask: bool, prefix: int = 0):
    """What the queries of a sequence see in a sparse mode, apart from an explicit mask."""
    if not has_mask or mode == ALL:
        return EVERYTHING
    offset = keys - queries  # column offset of the diagonal that ends in the lower right corner
    if mode == FULL:
        return Visible(pre, following)
    if mode == LEFT_UP:
        return Visible(None, 0)
    if mode == BAND:
        return Visible(pre - offset, following + offset)
    causal = Visible(None, offset)
    return replace(causal, prefix=prefix) if mode in (PREFIX, PREFIX_COMPRESSED) else causal


def of_packed(mode: int, lengths: list[tuple[int, int]], pre: int, following: int, has_mask: bool, prefix):
    """`visible` for each sequence of a packed (TND) batch. In mode 7 the last sequence has a band, in mode 8 the first."""
    filled = [n for n, (queries, _) in enumerate(lengths) if queries]
    special = None
    if filled:
        special = {VARLEN_LAST_BAND: filled[-1], VARLEN_FIRST_BAND: filled[0]}.get(mode)
    plain = {VARLEN_LAST_BAND: RIGHT_DOWN, VARLEN_FIRST_BAND: LEFT_UP}.get(mode, mode)
    return [
        visible(
            BAND if n == special else plain,
            queries,
            keys,
            pre,
            following,
            has_mask,
            prefix[n] if prefix else 0,
        )
        for n, (queries, keys) in enumerate(lengths)
    ]


def check_mode(mode: int, has_mask: bool, packed: bool, prefix, batch: int) -> None:
    """Raises RuntimeError for an unknown mode or if its other arguments are missing; warns if its mask is missing."""
    if not 0 <= mode <= 8:
        raise RuntimeError(f"npu_fusion_attention: sparse_mode must be from 0 to 8, but got {mode}")
    if mode and not has_mask:
        warnings.warn(
            f"npu_fusion_attention: sparse_mode {mode} has no effect without atten_mask: every score is computed, as on "
            "the device. Pass atten_mask, or sparse_mode 0",
            UserWarning,
            stacklevel=2,
        )
    if mode in (VARLEN_LAST_BAND, VARLEN_FIRST_BAND) and not packed:
        raise RuntimeError(f"npu_fusion_attention: sparse_mode {mode} needs input_layout TND")
    if mode == PREFIX and packed:
        raise RuntimeError(
            "npu_fusion_attention: input_layout TND does not allow sparse_mode 5; pass sparse_mode 6"
        )
    wanted = mode in (PREFIX, PREFIX_COMPRESSED)
    if wanted and (prefix is None or len(prefix) != batch):
        raise RuntimeError(
            f"npu_fusion_attention: sparse_mode {mode} needs prefix with one length for each of the {batch} sequences"
        )


def check_mask(mask, mode: int, batch: int, heads: int, queries: int, keys: int, packed: bool):
    """The mask as bool (B or 1, N or 1, Sq, Skv); None if the mode alone determines what is hidden.

    Raises:
        RuntimeError: the dtype is not bool or uint8, the shape does not match, or the mode requires the compressed mask.
    """
    if mask is None:
        return None
    if mask.dtype not in (msadapter.bool, msadapter.uint8):
        raise RuntimeError(
            f"npu_fusion_attention: atten_mask must be bool or uint8 (true hides a key), but got {mask.dtype}; "
            "masks that are added to the scores go into pse"
        )
    shape = tuple(mask.shape)
    if mode in COMPRESSED:
        _check_compressed(mask, mode, shape)
        return None
    allowed: list[tuple[int, ...]] = [(queries, keys)]
    if not packed:
        allowed += [(b, n, queries, keys) for b, n in ((batch, heads), (batch, 1), (1, 1))]
    if shape not in allowed:
        raise RuntimeError(
            f"npu_fusion_attention: atten_mask has the shape {list(shape)}, but must have one of the shapes "
            f"{', '.join(str(list(one)) for one in allowed)}"
        )
    mask = mask if mask.dtype == msadapter.bool else mask != 0
    return mask.reshape((1,) * (4 - len(shape)) + shape)


def _check_compressed(mask, mode: int, shape: tuple[int, ...]) -> None:
    rows = PREFIX_ROWS if mode == PREFIX_COMPRESSED else SIDE
    if shape[-2:] != (rows, SIDE) or any(size != 1 for size in shape[:-2]):
        raise RuntimeError(
            f"npu_fusion_attention: sparse_mode {mode} takes the compressed atten_mask of shape "
            f"[{rows}, {SIDE}], but got {list(shape)}"
        )
    if not _is_compressed(mask.reshape(rows, SIDE)):
        raise RuntimeError(
            f"npu_fusion_attention: with sparse_mode {mode} atten_mask must be true above the diagonal and false "
            "elsewhere, because the device knows this pattern only: sparse_mode itself says which keys are hidden"
        )


_seen: dict = {}  # the last valid compressed mask; a model passes the same one at every step


def _is_compressed(mask) -> bool:
    # Tensors made in inference mode have no version that would tell of a change, so they are looked at each time.
    key = None
    if not mask.is_inference():
        key = (mask.data_ptr(), mask._version, tuple(mask.shape), mask.dtype)
        if key == _seen.get("key"):
            return True
    flags = mask != 0
    good = bool((flags[:SIDE] == msadapter.ones_like(flags[:SIDE]).triu(1)).all())
    if good and flags.shape[0] > SIDE:
        rest = flags[SIDE:]
        good = not bool(rest[:, : SIDE // 2].any()) and bool(rest[:, SIDE // 2 :].all())
    if good and key is not None:
        _seen.update(key=key, mask=mask)  # keep the mask alive, so that its address is not reused
    return good
