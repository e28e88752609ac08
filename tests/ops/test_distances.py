"""cdist and pdist against their definition, and their kernels of the gradient against the differentiable formula."""

from __future__ import annotations

import math

import numpy as np
import pytest

import msadapter as torch

NORMS = [0.0, 1.0, 1.5, 2.0, 3.0, math.inf]
SHAPES = [
    ((5, 7), (9, 7)),
    ((2, 40, 33), (2, 600, 33)),
    ((3, 1, 20, 16), (4, 30, 16)),
    ((4, 0), (5, 0)),
    ((0, 3), (4, 3)),
    ((70, 64), (1100, 64)),
]


def points(shape, dtype, seed):
    values = np.random.default_rng(seed).standard_normal(shape)
    return torch.from_numpy(values).to(dtype).requires_grad_()


def expected_distances(x, y, p):
    x, y = (v.detach().double().numpy() for v in (x, y))
    off = np.abs(x[..., :, None, :] - y[..., None, :, :])
    if p == 0:
        return (off != 0).sum(-1).astype(float)
    if math.isinf(p):
        return off.max(-1, initial=0)
    return (off**p).sum(-1) ** (1 / p)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("shapes", SHAPES)
def test_cdist(shapes, p, dtype):
    x, y = points(shapes[0], dtype, 1), points(shapes[1], dtype, 2)
    if min(x.numel(), y.numel()) and x.shape[:-2] == y.shape[:-2]:
        y.data[..., 0, :] = x.data[..., 0, :]  # a distance of 0, where the gradient is 0
    result = torch.cdist(x, y, p)
    tolerance = {"rtol": 2e-5, "atol": 1e-6} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(result.detach().numpy(), expected_distances(x, y, p), **tolerance)
    slope = torch.randn(result.shape, dtype=dtype)
    formula = torch.autograd.grad(result, (x, y), slope, create_graph=True)
    kernel = torch.autograd.grad(torch.cdist(x, y, p), (x, y), slope)
    wide = {"rtol": 1e-3, "atol": 1e-3} if dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-9}
    for own, other in zip(kernel, formula, strict=True):
        torch.testing.assert_close(own, other.detach(), **wide)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("p", NORMS)
@pytest.mark.parametrize("shape", [(7, 3), (600, 20), (1, 4), (0, 3), (5, 0), (2, 33)])
def test_pdist_is_the_upper_triangle_of_cdist(shape, p, dtype):
    x = points(shape, dtype, 3)
    if shape[0] > 3:
        x.data[2] = x.data[1]
    rows, columns = torch.triu_indices(shape[0], shape[0], 1)
    result, square = torch.pdist(x, p), torch.cdist(x, x, p)[rows, columns]
    torch.testing.assert_close(result, square)
    slope = torch.randn(result.shape, dtype=dtype)
    (expected,) = torch.autograd.grad(square, x, slope, create_graph=True)
    tolerance = {"rtol": 1e-3, "atol": 1e-3} if dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-9}
    for recorded in (True, False):
        (own,) = torch.autograd.grad(torch.pdist(x, p), x, slope, create_graph=recorded)
        torch.testing.assert_close(own.detach(), expected.detach(), **tolerance)


def test_second_derivatives_of_distances():
    x, y = points((4, 3), torch.float64, 5), points((5, 3), torch.float64, 6)
    assert torch.autograd.gradgradcheck(lambda x, y: torch.cdist(x, y, 2.0), (x, y))
    assert torch.autograd.gradgradcheck(lambda x: torch.pdist(x, 3.0), (x,))
