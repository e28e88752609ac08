"""The names of element types in messages, for every type. The texts are those of PyTorch 2.13.0."""

from __future__ import annotations

import re

import pytest

import msadapter as torch

NAMES = {
    "bool": "bool",
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "uint16": "short unsigned int",
    "uint32": "unsigned int",
    "uint64": "long unsigned int",
    "float16": "c10::Half",
    "bfloat16": "c10::BFloat16",
    "float32": "float",
    "complex64": "c10::complex<float>",
    "complex128": "c10::complex<double>",
    "float8_e4m3fn": "c10::Float8_e4m3fn",
    "float8_e5m2": "c10::Float8_e5m2",
}


@pytest.mark.parametrize("dtype", NAMES)
def test_matrices_of_two_types(dtype):
    x = torch.ones(2, 2).to(getattr(torch, dtype))
    expected = f"expected m1 and m2 to have the same dtype, but got: {NAMES[dtype]} != double"
    with pytest.raises(RuntimeError, match=re.escape(expected)):
        x @ torch.ones(2, 2, dtype=torch.float64)


@pytest.mark.parametrize("dtype", sorted(NAMES.keys() - {"bool", "uint8"}))
def test_masks(dtype):
    a = torch.ones(2, 2)
    mask = a.to(getattr(torch, dtype))
    with pytest.raises(RuntimeError, match=re.escape(f"but got mask with dtype {NAMES[dtype]}")):
        a.masked_fill(mask, 1)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float8_e5m2])
def test_random_integers_of_eight_bit_floats(dtype):
    with pytest.raises(NotImplementedError):
        torch.empty(2).to(dtype).random_(0, 5)


def test_groups_that_no_channel_count_holds():
    """4 * 2**62 wraps to 0, the number of channels of an input without any."""
    x, weight = torch.ones(1, 0, 4), torch.ones(0, 4, 2)
    with pytest.raises(RuntimeError):
        torch.nn.functional.conv1d(x, weight, groups=2**62)
