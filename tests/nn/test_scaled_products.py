"""Matrix products with scales, compared with the plain product, and errors for scales of another layout."""

import pytest

import msadapter as torch
from msadapter.nn.functional import ScalingType, SwizzleType, scaled_grouped_mm, scaled_mm


def test_scales_of_rows_and_columns():
    torch.manual_seed(0)
    a, b = torch.randn(3, 5), torch.randn(5, 2)
    rows, columns = torch.rand(3) + 0.5, torch.rand(2) + 0.5
    row = ScalingType.RowWise
    out = scaled_mm(a, b, rows, row, columns, row, output_dtype=torch.float32)
    torch.testing.assert_close(out, (a * rows[:, None]) @ (b * columns))
    one = torch.tensor(0.25)
    out = scaled_mm(a, b, one, ScalingType.TensorWise, columns, row, output_dtype=torch.float32)
    torch.testing.assert_close(out, 0.25 * a @ (b * columns))


@pytest.mark.parametrize("function", [scaled_mm, scaled_grouped_mm])
def test_what_would_change_the_product_is_refused(function):
    a, b, one, whole = torch.randn(2, 3, 4), torch.randn(2, 4, 5), torch.tensor(1.0), ScalingType.TensorWise
    if function is scaled_mm:
        a, b = a[0], b[0]
    function(a, b, one, whole, one, whole, swizzle_a=SwizzleType.NO_SWIZZLE)
    with pytest.raises(NotImplementedError, match=f"{function.__name__}: swizzled scales"):
        function(a, b, one, whole, one, whole, swizzle_b=[SwizzleType.SWIZZLE_32_4_4])
    with pytest.raises(NotImplementedError, match=f"{function.__name__}: contraction_dim"):
        function(a, b, one, whole, one, whole, contraction_dim=(0, 1))
    with pytest.raises(NotImplementedError, match=f"{function.__name__}: scales of blocks"):
        function(a, b, one, ScalingType.BlockWise1x32, one, whole)
