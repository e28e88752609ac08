"""Python's number types can be used as dtypes."""

import pytest

import msadapter as torch


@pytest.mark.parametrize(
    ("number", "dtype"),
    [(bool, torch.bool), (int, torch.int64), (float, torch.float64), (complex, torch.complex128)],
)
def test_as_dtype(number, dtype):
    assert torch.ones(2, dtype=number).dtype is dtype
    assert torch.zeros_like(torch.ones(2), dtype=number).dtype is dtype
