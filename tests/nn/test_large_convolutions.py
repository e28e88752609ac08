"""Convolutions large enough for oneDNN against the same ones in float64, which this package computes itself."""

from __future__ import annotations

import pytest

import msadapter as torch
import msadapter.nn.functional as F

CASES = {
    "1d": (F.conv1d, (3, 8, 500), (12, 8, 5), {"padding": 2, "stride": 3}),
    "1d dilated": (F.conv1d, (3, 8, 500), (12, 8, 5), {"dilation": 7}),
    "2d": (F.conv2d, (2, 6, 33, 41), (10, 6, 3, 3), {"padding": 1}),
    "2d rest of the stride": (F.conv2d, (2, 6, 34, 40), (10, 6, 3, 5), {"stride": (3, 2), "padding": (0, 2)}),
    "2d groups": (F.conv2d, (2, 12, 30, 30), (24, 3, 3, 3), {"groups": 4, "padding": 1}),
    "2d depthwise": (F.conv2d, (2, 32, 40, 40), (32, 1, 3, 3), {"groups": 32, "padding": 1, "stride": 2}),
    "2d pointwise": (F.conv2d, (2, 32, 30, 30), (16, 32, 1, 1), {}),
    "2d dilated": (F.conv2d, (2, 8, 40, 40), (8, 8, 3, 3), {"dilation": (2, 3), "padding": 3}),
    "3d": (F.conv3d, (1, 6, 12, 14, 16), (8, 6, 3, 3, 2), {"padding": 1, "stride": (1, 2, 1)}),
    "1d transposed": (F.conv_transpose1d, (3, 8, 300), (8, 12, 5), {"stride": 2, "output_padding": 1}),
    "2d transposed": (F.conv_transpose2d, (2, 8, 24, 24), (8, 6, 3, 3), {"stride": 2, "padding": 1}),
    "2d transposed groups": (F.conv_transpose2d, (2, 8, 24, 24), (8, 6, 3, 3), {"groups": 2, "dilation": 2}),
    "2d transposed wide rest": (
        F.conv_transpose2d,
        (2, 8, 24, 24),
        (8, 6, 3, 3),
        {"dilation": 3, "stride": 2, "output_padding": 2},
    ),
    "3d transposed": (F.conv_transpose3d, (1, 6, 10, 11, 12), (6, 4, 3, 3, 3), {"stride": 2}),
}

# Without AVX-512 the sums of an image's gradient are kept in bfloat16, as in PyTorch, and rounded at each step.
COARSE = 2**-7 if torch.backends.cpu.get_cpu_capability() == "AVX512" else 2**-6


def answers(function, options, image, weight, bias, slope):
    image, weight, bias = (x.detach().requires_grad_() for x in (image, weight, bias))
    result = function(image, weight, bias, **options)
    if slope is None:
        slope = torch.randn(result.shape, dtype=result.dtype)
    return [result, *torch.autograd.grad(result, [image, weight, bias], slope.to(result.dtype))], slope


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("layout", ["contiguous", "channels last"])
@pytest.mark.parametrize("case", CASES)
def test_large_convolution(case, layout, dtype):
    function, image, weight, options = CASES[case]
    torch.manual_seed(5)
    outputs = weight[1] * options.get("groups", 1) if "transpose" in function.__name__ else weight[0]
    image, weight, bias = (torch.randn(shape).to(dtype) for shape in (image, weight, (outputs,)))
    if layout == "channels last":
        image = image.movedim(1, -1).contiguous().movedim(-1, 1)
    exact, slope = answers(function, options, image.double(), weight.double(), bias.double(), None)
    if dtype != torch.float32:
        slope = slope.to(dtype).double()
        exact, slope = answers(function, options, image.double(), weight.double(), bias.double(), slope)
    found, _ = answers(function, options, image, weight, bias, slope)
    for name, ours, expected in zip(("result", "image", "weight", "bias"), found, exact, strict=True):
        assert ours.dtype == dtype
        scale = float(expected.abs().max())
        unit = {torch.float32: 2**-18, torch.bfloat16: COARSE, torch.float16: 2**-9}[dtype]
        error = float((ours.double() - expected).abs().max())
        assert error <= unit * scale, f"{name}: {error} of {scale}"


def test_a_changed_image_is_not_mistaken_for_the_last_one():
    weight = torch.randn(16, 8, 3, 3)
    for shift in range(3):
        image = torch.randn(2, 8, 40, 40) + shift
        expected = F.conv2d(image.double(), weight.double()).float()
        torch.testing.assert_close(F.conv2d(image, weight), expected, rtol=1e-4, atol=1e-4)
