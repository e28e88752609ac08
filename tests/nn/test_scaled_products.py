"""Products of groups with scales, compared with the plain product, and errors for scales of another layout. PyTorch has them on
accelerators only. The answers of `scaled_mm` are in the suite float8.
"""

import pytest

import msadapter as torch
from msadapter.nn.functional import ScalingType, SwizzleType, scaled_grouped_mm


def test_scales_of_rows_and_columns():
    torch.manual_seed(0)
    a, b = torch.randn(2, 3, 5), torch.randn(2, 5, 4)
    rows, columns = torch.rand(2, 3) + 0.5, torch.rand(2, 4) + 0.5
    row = ScalingType.RowWise
    out = scaled_grouped_mm(a, b, rows, row, columns, row, output_dtype=torch.float32)
    torch.testing.assert_close(out, (a * rows[..., None]) @ (b * columns[:, None]))
    one = torch.tensor(0.25)
    out = scaled_grouped_mm(a, b, one, ScalingType.TensorWise, columns, row)
    torch.testing.assert_close(out, (0.25 * a @ (b * columns[:, None])).bfloat16())


def test_what_would_change_the_product_is_refused():
    a, b, one, whole = torch.randn(2, 3, 4), torch.randn(2, 4, 5), torch.tensor(1.0), ScalingType.TensorWise
    scaled_grouped_mm(a, b, one, whole, one, whole, swizzle_a=SwizzleType.NO_SWIZZLE)
    with pytest.raises(NotImplementedError, match="scaled_grouped_mm: swizzled scales"):
        scaled_grouped_mm(a, b, one, whole, one, whole, swizzle_b=[SwizzleType.SWIZZLE_32_4_4])
    with pytest.raises(NotImplementedError, match="scaled_grouped_mm: contraction_dim"):
        scaled_grouped_mm(a, b, one, whole, one, whole, contraction_dim=(0, 1))
    with pytest.raises(NotImplementedError, match="scaled_grouped_mm: scales of blocks"):
        scaled_grouped_mm(a, b, one, ScalingType.BlockWise1x32, one, whole)
