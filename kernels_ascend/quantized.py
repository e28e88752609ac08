"""Matrix products of int8 operands, and of float operands with int8 weights, as the fused operators define them."""

from __future__ import annotations

import msadapter
from msadapter.ops import t


def dequantized_weight(weight, scale, offset, dtype, group_size: int = 0):
    """(weight + offset) * scale in ``dtype``.

    Args:
        weight: (k, n) int8. scale, offset (may be None): one element, (n,), (1, n), or (ceil(k / group_size), n).
    """
    wide = weight.to(dtype)
    if offset is not None:
        wide = wide + _for_rows(offset, weight.shape[0], group_size)
    return wide * _for_rows(scale, weight.shape[0], group_size)


def _for_rows(values, rows: int, group_size: int):
    return values.repeat_interleave(group_size, 0)[:rows] if group_size else values


def whole_product(x1, x2, scale, bias=None, row_scale=None):
    """(x1 @ x2 + bias) * scale * row_scale for int8 operands. The integer sums are exact.

    Args:
        x1: (..., m, k), x2: (k, n), both int8. scale: bfloat16 or float32; (n,) or one element. bias: (n,) int32 or None.
        row_scale: (m,) float32 or None. It is required if scale is float32.

    Returns:
        bfloat16 if scale is bfloat16, float16 if scale is float32.

    Raises:
        RuntimeError: the operands or the bias are not integers. NotImplementedError: scale is packed (64 bits).
    """
    if x1.dtype != msadapter.int8 or x2.dtype != msadapter.int8:
        raise RuntimeError(
            f"a product with dequant_scale needs int8 operands, but got {x1.dtype} and {x2.dtype}"
        )
    if bias is not None and bias.dtype != msadapter.int32:
        raise RuntimeError(f"the bias of a product of int8 operands must be int32, but got {bias.dtype}")
    if scale.dtype not in (msadapter.bfloat16, msadapter.float32):
        raise NotImplementedError(
            f"torch_npu: a dequant_scale of {scale.dtype} is not supported (docs/coverage.md)"
        )
    if scale.dtype == msadapter.float32 and row_scale is None:
        raise RuntimeError("a float32 dequant_scale needs pertoken_scale")
    out = t.matmul(x1.double(), x2.double())  # exact, because the sums are below 2**53
    if bias is not None:
        out = out + bias.double()
    out = out.float() * scale.float()
    if row_scale is not None:
        out = out * row_scale.float().unsqueeze(-1)
    return out.to(msadapter.bfloat16 if scale.dtype == msadapter.bfloat16 else msadapter.float16)
