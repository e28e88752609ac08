"""Element-wise functions of two Python numbers: PyTorch takes them for arithmetic and refuses them elsewhere."""

from __future__ import annotations

import pytest

import msadapter as torch


@pytest.mark.parametrize(
    "answer, expected",
    [
        (lambda: torch.add(9, 2), torch.tensor(11)),
        (lambda: torch.add(3, 4, alpha=2), torch.tensor(11)),
        (lambda: torch.add(True, False), torch.tensor(True)),
        (lambda: torch.sub(9, 2.0), torch.tensor(7.0)),
        (lambda: torch.mul(2, 1j), torch.tensor(2j)),
        (lambda: torch.div(9, 2), torch.tensor(4.5)),
        (lambda: torch.divide(9, 0), torch.tensor(float("inf"))),
        (lambda: torch.div(9, 2, rounding_mode="floor"), torch.tensor(4)),
        (lambda: torch.div(-9, 2, rounding_mode="floor"), torch.tensor(-5)),
        (lambda: torch.div(-9, 2, rounding_mode="trunc"), torch.tensor(-4)),
        (lambda: torch.floor_divide(-7, 2.5), torch.tensor(-3.0)),
        (lambda: torch.floor_divide(9, torch.tensor(2)), torch.tensor(4)),
        (lambda: torch.add(1, torch.ones(2)), torch.full((2,), 2.0)),
        (
            lambda: torch.mul(2, torch.ones(2, dtype=torch.float16)),
            torch.full((2,), 2.0, dtype=torch.float16),
        ),
        (lambda: torch.div(3, 2, out=torch.empty(())), torch.tensor(1.5)),
    ],
)
def test_arithmetic(answer, expected):
    torch.testing.assert_close(answer(), expected, rtol=0, atol=0)


def test_gradient_of_the_tensor_beside_a_number():
    x = torch.tensor([2.0, 4.0], requires_grad=True)
    (torch.div(8, x).sum() + torch.sub(1, x, alpha=3).sum() + torch.mul(5, x).sum()).backward()
    assert x.grad.tolist() == [-2.0 - 3 + 5, -0.5 - 3 + 5]


@pytest.mark.parametrize(
    "name",
    ["pow", "float_power", "remainder", "xlogy", "bitwise_and", "bitwise_left_shift", "special.zeta", "fmod"],
)
def test_refused(name):
    function = torch
    for part in name.split("."):
        function = getattr(function, part)
    with pytest.raises(TypeError):
        function(9, 2)
    with pytest.raises(TypeError):
        function(9.0, 2)


def test_subtraction_of_bools():
    with pytest.raises(RuntimeError, match="Subtraction, the `-` operator"):
        torch.sub(True, 2)
