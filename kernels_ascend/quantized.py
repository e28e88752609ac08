"""Products of eight-bit integers, and of floats with eight-bit weights, as the fused operators define them."""

from __future__ import annotations

import msadapter
from msadapter.ops._declare import t


def dequantized_weight(weight, scale, offset, dtype, group_size: int = 0):
    """(weight + offset) * scale in ``dtype``.

    Args:
        weight: (k, n) int8. scale, offset (or None): one number, (n,), (1, n), or with group_size (ceil(k / group_size), n).
    """
    wide = weight.to(dtype)
    if offset is not None:
        wide = wide + _for_rows(offset, weight.shape[0], group_size)
    return wide * _for_rows(scale, weight.shape[0], group_size)


def _for_rows(values, rows: int, group_size: int):
    return values.repeat_interleave(group_size, 0)[:rows] if group_size else values


def whole_product(x1, x2, scale, bias=None, row_scale=None):
    """(x1 @ x2 + bias) * scale * row_scale of int8 operands; the sum of the products is exact.

    Args:
        x1: (..., m, k), x2: (k, n), both int8. scale: bfloat16, or float32; (n,) or one number. bias: (n,) int32 or None.
        row_scale: (m,) float32, or None.

    Returns:
        bfloat16 for a bfloat16 scale, float16 for a float32 one (the latter needs row_scale).

    Raises:
        RuntimeError: operands or a bias that are not whole numbers. NotImplementedError: a packed (64-bit) scale.
    """
    if x1.dtype != msadapter.int8 or x2.dtype != msadapter.int8:
        raise RuntimeError(
            f"a product with dequant_scale needs int8 operands, but got {x1.dtype} and {x2.dtype}"
        )
    if bias is not None and bias.dtype != msadapter.int32:
        raise RuntimeError(f"the bias of a product of int8 must be int32, but got {bias.dtype}")
    if scale.dtype not in (msadapter.bfloat16, msadapter.float32):
        raise NotImplementedError(
            f"torch_npu: a dequant_scale of {scale.dtype} is not supported (docs/coverage.md)"
        )
    if scale.dtype == msadapter.float32 and row_scale is None:
        raise RuntimeError("a float32 dequant_scale needs pertoken_scale")
    out = t.matmul(x1.double(), x2.double())  # sums of less than 2**53: exact
    if bias is not None:
        out = out + bias.double()
    out = out.float() * scale.float()
    if row_scale is not None:
        out = out * row_scale.float().unsqueeze(-1)
    return out.to(msadapter.bfloat16 if scale.dtype == msadapter.bfloat16 else msadapter.float16)
