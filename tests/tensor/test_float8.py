"""float8_e4m3fn and float8_e5m2: every bit pattern, rounding, operators that move values, and errors of
others.
"""

from __future__ import annotations

import io
import math

import pytest

import msadapter as torch

FORMATS = {"float8_e4m3fn": (3, 7, False), "float8_e5m2": (2, 15, True)}


def _value(bits: int, mantissa: int, bias: int, infinity: bool) -> float:
    sign, e, m = -1.0 if bits & 0x80 else 1.0, (bits & 0x7F) >> mantissa, bits & ((1 << mantissa) - 1)
    if infinity and e == 31:
        return sign * math.inf if m == 0 else math.nan
    if not infinity and bits & 0x7F == 0x7F:
        return math.nan
    return sign * (
        math.ldexp(m, 1 - bias - mantissa) if e == 0 else math.ldexp((1 << mantissa) + m, e - bias - mantissa)
    )


@pytest.mark.parametrize("name", FORMATS)
def test_every_pattern(name):
    dtype = getattr(torch, name)
    found = torch.arange(256, dtype=torch.uint8).view(dtype).float().tolist()
    for bits, value in enumerate(found):
        expected = _value(bits, *FORMATS[name])
        assert value == expected or (math.isnan(value) and math.isnan(expected)), bits


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("source", ["float32", "float64", "bfloat16"])
def test_rounds_to_the_nearest_and_ties_to_even(name, source):
    dtype = getattr(torch, name)
    mantissa, bias, infinity = FORMATS[name]
    finite = [_value(bits, mantissa, bias, infinity) for bits in range(0x7C if infinity else 0x7F)]
    points = [(bits, low, high) for bits, (low, high) in enumerate(zip(finite, finite[1:], strict=False))]
    below = torch.tensor(
        [low + (high - low) * 0.375 for _, low, high in points], dtype=getattr(torch, source)
    )
    above = torch.tensor(
        [low + (high - low) * 0.625 for _, low, high in points], dtype=getattr(torch, source)
    )
    tie = torch.tensor([(low + high) / 2 for _, low, high in points], dtype=getattr(torch, source))
    patterns = [bits for bits, _, _ in points]
    assert below.to(dtype).view(torch.uint8).tolist() == patterns
    assert above.to(dtype).view(torch.uint8).tolist() == [bits + 1 for bits in patterns]
    assert tie.to(dtype).view(torch.uint8).tolist() == [bits + bits % 2 for bits in patterns]
    assert (-tie).to(dtype).view(torch.uint8).tolist() == [0x80 + bits + bits % 2 for bits in patterns]


def test_too_large_numbers():
    """As in PyTorch 2.13, a number that is too large becomes the largest one, if the type has no infinity."""
    x = torch.tensor([448.0, 463.9, 464.0, 480.0, 1e4, math.inf, -1e5])
    assert x.to(torch.float8_e4m3fn).float().tolist() == [448.0] * 6 + [-448.0]
    assert math.isnan(torch.tensor(math.nan).to(torch.float8_e4m3fn).item())
    x = torch.tensor([57344.0, 60000.0, 61440.0, 1e6, -math.inf])
    assert x.to(torch.float8_e5m2).float().tolist() == [57344.0, 57344.0, math.inf, math.inf, -math.inf]


@pytest.mark.parametrize("name", FORMATS)
def test_moved_and_kept(name):
    dtype = getattr(torch, name)
    x = torch.tensor([[1.0, -0.5], [3.0, 0.0]], dtype=dtype)
    assert x.dtype is dtype and x.element_size() == 1 and x.is_floating_point()
    assert torch.cat([x, x.t()]).tolist() == [[1.0, -0.5], [3.0, 0.0], [1.0, 3.0], [-0.5, 0.0]]
    assert x[1, 0].item() == 3.0 and x[torch.tensor([1])].tolist() == [[3.0, 0.0]]
    assert torch.full((2,), 2.0, dtype=dtype).tolist() == [2.0, 2.0]
    assert repr(x[0]) == f"tensor([ 1.0000, -0.5000], dtype=torch.{name})"
    file = io.BytesIO()
    torch.save({"x": x}, file)
    file.seek(0)
    again = torch.load(file)["x"]
    assert again.dtype is dtype and again.tolist() == x.tolist()


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_computes_in_them(name):
    x = torch.ones(3, dtype=getattr(torch, name))
    one = torch.ones(2)
    for compute in (
        lambda: x + x,
        lambda: x.sum(),
        lambda: one.sum(dtype=x.dtype),
        lambda: x.amax(),
        lambda: x @ x,
    ):
        with pytest.raises(NotImplementedError, match="not implemented for 'Float8_e"):
            compute()
    with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported"):
        x + torch.ones(3)
    with pytest.raises(TypeError, match="Got unsupported ScalarType Float8_e"):
        x.numpy()
