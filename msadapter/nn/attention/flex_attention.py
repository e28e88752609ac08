"""flex_attention is not supported, because it needs a compiler for the score function."""

from typing import NamedTuple

__all__ = ["AuxRequest", "BlockMask", "create_block_mask", "create_mask", "flex_attention"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """Names the additional results that flex_attention can return."""

    lse: bool = False
    max_scores: bool = False


def _refuse(name):
    raise NotImplementedError(
        f"torch.nn.attention.flex_attention.{name}: flexible attention is not supported (docs/coverage.md)"
    )


class BlockMask:
    """Not supported: creating an instance raises NotImplementedError."""

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
    """Not supported: raises NotImplementedError."""
    _refuse("flex_attention")


def create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN, device=None, BLOCK_SIZE=128, _compile=False):
    """Not supported: raises NotImplementedError."""
    _refuse("create_block_mask")


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):
    """Not supported: raises NotImplementedError."""
    _refuse("create_mask")
