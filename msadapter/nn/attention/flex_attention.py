"""flex_attention is not offered: it needs a compiler for the score function."""

from typing import NamedTuple

__all__ = ["AuxRequest", "BlockMask", "create_block_mask", "create_mask", "flex_attention"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What flex_attention is asked to return beside the result."""

    lse: bool = False
    max_scores: bool = False


def _refuse(name):
    raise NotImplementedError(
        f"torch.nn.attention.flex_attention.{name}: flexible attention is not supported (docs/coverage.md)"
    )


class BlockMask:
    """Refused on creation."""

    def __init__(self, *args, **kwargs):
        _refuse("BlockMask")


def flex_attention(
    query,
    key,
    value,
    score_mod=None,
    block_mask=None,
    scale=None,
    enable_gqa=False,
    return_lse=False,
    kernel_options=None,
):
    """Refused."""
    _refuse("flex_attention")


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device="cuda", BLOCK_SIZE=128, _compile=False):
    """Refused."""
    _refuse("create_block_mask")


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device="cuda"):
    """Refused."""
    _refuse("create_mask")
