"""Norms, losses, attention, convolution ... against recorded answers of real PyTorch (tests/golden/expressions/nn_ops.py)."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("nn_functions")

F = torch.nn.functional


@together(CASES)
def test_case(case):
    check("nn_functions", case, CASES[case], torch)


def test_attention_second_order_is_that_of_the_formula():
    q, k, v = (torch.randn(1, 2, 5, 4, dtype=torch.float64, requires_grad=True) for _ in range(3))

    def formula(q, k, v):
        return torch.softmax(q @ k.transpose(-2, -1) / 2, -1) @ v

    def second(f):
        grads = torch.autograd.grad(f(q, k, v).square().sum(), (q, k, v), create_graph=True)
        return torch.autograd.grad(sum(g.sin().sum() for g in grads), (q, k, v))

    for have, want in zip(second(F.scaled_dot_product_attention), second(formula), strict=True):
        torch.testing.assert_close(have, want)


def test_attention_query_that_sees_nothing_is_zero():
    x = torch.randn(1, 1, 3, 4)
    mask = torch.tensor([[True, True, True], [False, False, False], [True, False, True]])
    assert F.scaled_dot_product_attention(x, x, x, mask)[0, 0, 1].tolist() == [0.0] * 4


@pytest.mark.parametrize(
    "mode, image, size",
    [
        ("nearest", (4,), 2**40),
        ("linear", (4,), 2**40),
        ("bilinear", (4, 4), (1, 2**40)),
        ("bicubic", (4, 4), (2**40, 1)),
    ],
)
def test_image_that_does_not_fit_into_memory(mode, image, size):
    """The result is allocated before the weights, so that the error names its size, as in PyTorch."""
    with pytest.raises(RuntimeError, match=f"can't allocate memory: you tried to allocate {2**42} bytes"):
        F.interpolate(torch.ones(1, 1, *image), size=size, mode=mode)


def test_fractional_max_pool_needs_memory_for_its_input_alone():
    """The gradient of a large image: one image for each window would be 68 GB."""
    x = torch.randn(1, 1, 512, 512, requires_grad=True)
    out, chosen = torch.nn.functional.fractional_max_pool2d(x, 2, output_size=(256, 256), return_indices=True)
    out.sum().backward()
    expected = torch.zeros(512 * 512).scatter_add(0, chosen.flatten(), torch.ones(chosen.numel()))
    assert torch.equal(x.grad.flatten(), expected)


@pytest.mark.parametrize("corners", [False, True])
@pytest.mark.parametrize(
    ("mode", "image", "size"),
    [
        ("linear", (7,), 19),
        ("linear", (19,), 5),
        ("bilinear", (6, 9), (17, 4)),
        ("bilinear", (1, 5), (3, 1)),
        ("bicubic", (6, 9), (5, 23)),
        ("trilinear", (3, 6, 5), (7, 2, 9)),
    ],
)
def test_gradient_of_interpolate_has_the_weights_of_the_result(mode, image, size, corners):
    """The result is linear in the image, so the products (g, f(x)) and (gradient of g, x) are equal."""
    x = torch.randn(2, 3, *image, dtype=torch.float64, requires_grad=True)
    out = F.interpolate(x, size=size, mode=mode, align_corners=corners)
    g = torch.randn_like(out)
    (gradient,) = torch.autograd.grad(out, x, g)
    torch.testing.assert_close((gradient * x).sum(), (g * out).sum())
    for dtype, within in ((torch.float32, 1e-5), (torch.bfloat16, 2e-2)):
        low = x.detach().to(dtype).requires_grad_()
        out = F.interpolate(low, size=size, mode=mode, align_corners=corners)
        (short,) = torch.autograd.grad(out, low, g.to(dtype))
        torch.testing.assert_close(short.double(), gradient, rtol=within, atol=within)
