"""Losses of pairs and of several classes: definitions, gradients of both orders, and the memory that they take."""

from __future__ import annotations

import itertools
import math

import pytest

import msadapter as torch
from msadapter.nn import functional as F


def _huber(d, limit, scale):
    size = d.abs()
    return torch.where(size <= limit, d * d / (2 * scale), limit * (size - limit / 2) / scale)


@pytest.mark.parametrize("limit", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_clipped_losses_are_their_definition(limit, reduction):
    x, y = (torch.randn(9, 70, dtype=torch.float64).t() * 2 for _ in range(2))
    for mine, scale in (
        (lambda a, b: F.huber_loss(a, b, reduction=reduction, delta=limit), 1),
        (lambda a, b: F.smooth_l1_loss(a, b, reduction=reduction, beta=limit), limit),
    ):
        expected = _huber(x - y, limit, scale)
        expected = expected if reduction == "none" else getattr(expected, reduction)()
        torch.testing.assert_close(mine(x, y), expected, rtol=1e-12, atol=1e-12)
        a, b = x[:4, :3].clone().requires_grad_(), y[:4, :3].clone().requires_grad_()
        assert torch.autograd.gradcheck(mine, (a, b))
        assert torch.autograd.gradgradcheck(mine, (a, b))


@pytest.mark.parametrize("loss, node", [(F.huber_loss, "HuberLoss"), (F.smooth_l1_loss, "SmoothL1Loss")])
def test_clipped_losses_of_extreme_values(loss, node):
    x = torch.tensor([math.inf, -math.inf, math.nan, 3e38, 1e-30], requires_grad=True)
    result = loss(x, torch.zeros(5), reduction="none")
    assert result.isinf().tolist() == [True, True, False, False, False]
    assert result.isnan().tolist() == [False, False, True, False, False]
    assert type(result.grad_fn).__name__ == node + "Backward0"
    result.nansum().backward()
    assert x.grad[:2].tolist() == [1.0, -1.0]


def _margin_of_pairs(row, labels):
    """The loss of one row, pair by pair."""
    targets = labels[: labels.index(-1)] if -1 in labels else labels
    total = sum(
        max(0.0, 1 - row[own] + row[other])
        for own in targets
        for other in range(len(row))
        if other not in targets
    )
    return total / len(row)


@pytest.mark.parametrize("classes", [1, 5, 16, 37])
def test_the_multilabel_margin_is_its_definition(classes):
    x = torch.randn(6, classes, dtype=torch.float64)
    labels = torch.randint(-1, classes, (6, classes))
    labels[0] = -1
    expected = [_margin_of_pairs(row, own) for row, own in zip(x.tolist(), labels.tolist(), strict=True)]
    found = F.multilabel_margin_loss(x, labels, reduction="none")
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)
    x.requires_grad_()
    assert torch.autograd.gradcheck(lambda v: F.multilabel_margin_loss(v, labels), (x,))


def test_the_multilabel_margin_refuses_labels_out_of_range():
    for label in (3, -2):
        with pytest.raises(RuntimeError, match="argument target is out of range"):
            F.multilabel_margin_loss(torch.ones(2, 3), torch.tensor([[0, 1, -1], [0, -1, label]]))


def test_the_multilabel_margin_has_no_tensor_of_all_pairs():
    x = torch.randn(200, 200, requires_grad=True)
    labels = torch.randint(0, 200, (200, 200))
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.max_memory_allocated()
    F.multilabel_margin_loss(x, labels).backward()
    assert torch.cuda.max_memory_allocated() - before < 10 * 200 * 200 * 4


@pytest.mark.parametrize("repeat", [False, True])
@pytest.mark.parametrize("r", [1, 2, 3, 4])
def test_combinations_are_in_order_and_have_gradients(r, repeat):
    pick = itertools.combinations_with_replacement if repeat else itertools.combinations
    for n in (0, 1, 4, 6):
        x = torch.arange(n, dtype=torch.float64).requires_grad_()
        found = torch.combinations(x, r, repeat)
        assert found.tolist() == [list(map(float, row)) for row in pick(range(n), r)]
        assert found.shape[1] == r
        found.sum().backward()
        assert x.grad.shape == (n,)


def test_gated_units_have_second_derivatives():
    x = torch.randn(4, 6, dtype=torch.float64, requires_grad=True)
    for dim in (0, 1):
        assert torch.autograd.gradcheck(lambda v, d=dim: F.glu(v, d), (x,))
        assert torch.autograd.gradgradcheck(lambda v, d=dim: F.glu(v, d), (x,))
    assert type(F.glu(x).grad_fn).__name__ == "GluBackward0"


def test_sums_with_an_outer_product_have_second_derivatives():
    start, a, b = (torch.randn(n, dtype=torch.float64, requires_grad=True) for n in (4, 3, 4))
    for alpha in (1, 0.5):
        assert torch.autograd.gradcheck(lambda s, u, v, f=alpha: torch.addr(s, u, v, alpha=f), (start, a, b))
        assert torch.autograd.gradgradcheck(
            lambda s, u, v, f=alpha: torch.addr(s, u, v, alpha=f), (start, a, b)
        )
