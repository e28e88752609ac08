"""Causal masks as tensors that scaled_dot_product_attention takes as `attn_mask`, without a mask in memory."""

from __future__ import annotations

import warnings
from enum import IntEnum

from ... import ops
from ..._values.dtype import ALL
from ...tensor import Tensor, device
from ..functional import scaled_dot_product_attention

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(IntEnum):
    """Which corner of the mask its diagonal starts or ends in, if it is not square."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask of ``seq_len_q`` rows and ``seq_len_kv`` columns, which stands for its numbers.

    Only scaled_dot_product_attention takes it. `_materialize` returns the mask itself.
    """

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if not isinstance(variant, CausalVariant):
            raise AssertionError("variant must be CausalVariant")
        self.variant = variant
        self.seq_len_q = seq_len_q
        self.seq_len_kv = seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!",
                stacklevel=2,
            )

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int):
        return ops.empty(0).as_subclass(cls)

    def _materialize(self, device: device | None = None) -> Tensor:
        """Return the mask as a tensor of bool, in which False is masked out."""
        last = 0 if self.variant == CausalVariant.UPPER_LEFT else self.seq_len_kv - self.seq_len_q
        return ops.tril(
            ops.ones(self.seq_len_q, self.seq_len_kv, device=device, dtype=ALL["bool"]), diagonal=last
        )

    @staticmethod
    def _dispatch(query, key, value, attn_mask, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        # A square mask is the same in both variants, and the kernel makes it by itself.
        square = attn_mask.seq_len_q == attn_mask.seq_len_kv
        if square or attn_mask.variant == CausalVariant.UPPER_LEFT:
            return scaled_dot_product_attention(
                query, key, value, None, dropout_p, is_causal=True, scale=scale, enable_gqa=enable_gqa
            )
        mask = attn_mask._materialize(query.device)
        return scaled_dot_product_attention(
            query, key, value, mask, dropout_p, scale=scale, enable_gqa=enable_gqa
        )

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        """Send scaled_dot_product_attention to the kernel. Other functions take the class as a plain tensor."""
        if func is scaled_dot_product_attention:
            return cls._dispatch(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})

    def __repr__(self) -> str:  # type: ignore[override]
        return str(self._materialize())


def causal_upper_left(*size: int) -> CausalBias:
    """Return the mask whose diagonal starts in the upper left corner."""
    return _of_size(CausalVariant.UPPER_LEFT, size)


def causal_lower_right(*size: int) -> CausalBias:
    """Return the mask whose diagonal ends in the lower right corner, as decoding with a cache needs it."""
    return _of_size(CausalVariant.LOWER_RIGHT, size)


def _of_size(variant: CausalVariant, size: tuple[int, ...]) -> CausalBias:
    if len(size) != 2:
        name = f"causal_{variant.name.lower()}"
        raise AssertionError(f"{name} only supports 2D tensors, got size {size}")
    rows, columns = size
    return CausalBias(variant, rows, columns)
