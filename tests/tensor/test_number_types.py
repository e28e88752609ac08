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


@pytest.mark.parametrize("name", [f"{kind}{bits}" for kind in ("int", "uint") for bits in range(1, 8)])
def test_types_of_few_bits_are_names_only(name):
    """As in PyTorch, no operator computes with them. Libraries for quantization name them in tables."""
    dtype = getattr(torch, name)
    assert (repr(dtype), dtype.itemsize, dtype.is_signed) == (f"torch.{name}", 1, name.startswith("int"))
    assert not dtype.is_floating_point and dtype.to_real() is dtype
    with pytest.raises(TypeError, match="requires an integer input type"):
        torch.iinfo(dtype)
    for make in (lambda: torch.zeros(2, dtype=dtype), lambda: torch.tensor([1], dtype=dtype)):
        with pytest.raises(NotImplementedError, match=f"torch.{name}"):
            make()
