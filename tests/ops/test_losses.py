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


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("classes", [1, 2, 33, 70])
def test_the_margin_of_one_target_is_its_definition(classes, p, weighted):
    x = torch.randn(6, classes, dtype=torch.float64)
    targets = torch.randint(0, classes, (6,))
    weight = torch.rand(classes, dtype=torch.float64) if weighted else None

    def loss(v):
        return F.multi_margin_loss(v, targets, p=p, margin=0.8, weight=weight, reduction="none")

    expected = []
    for row, own in zip(x.tolist(), targets.tolist(), strict=True):
        gaps = [max(0, 0.8 - row[own] + v) ** p for i, v in enumerate(row) if i != own]
        expected.append(sum(gaps) / classes * (weight[own].item() if weighted else 1))
    torch.testing.assert_close(loss(x), torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-12)
    half = loss(x.half())
    torch.testing.assert_close(
        half.double(), torch.tensor(expected, dtype=torch.float64), rtol=0.02, atol=0.02
    )
    x.requires_grad_()
    assert torch.autograd.gradcheck(loss, (x,))
    assert torch.autograd.gradgradcheck(loss, (x,))
    (recorded,) = torch.autograd.grad(
        loss(x).sum(), x, create_graph=True
    )  # computed by operators of the table
    torch.testing.assert_close(torch.autograd.grad(loss(x).sum(), x)[0], recorded.detach())


def test_the_margin_of_one_target_checks_targets_and_weights():
    for target in (3, -1):
        with pytest.raises(RuntimeError, match="target out of range"):
            F.multi_margin_loss(torch.ones(2, 3), torch.tensor([0, target]))
    with pytest.raises(RuntimeError, match="inconsistent weight size, expected 3"):
        F.multi_margin_loss(torch.ones(2, 3), torch.tensor([0, 1]), weight=torch.ones(2))


def _peak_bytes(function) -> int:
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.max_memory_allocated()
    function()
    return torch.cuda.max_memory_allocated() - before


def test_the_margin_of_one_target_has_no_tensor_of_the_gaps():
    x, targets = torch.randn(500, 200), torch.randint(0, 200, (500,))
    assert _peak_bytes(lambda: F.multi_margin_loss(x, targets)) < x.nbytes / 10
    x.requires_grad_()
    assert _peak_bytes(lambda: F.multi_margin_loss(x, targets).backward()) < 2 * x.nbytes


def test_histograms_of_points_need_memory_for_the_bins_alone():
    points = torch.randn(50_000, 2)
    assert _peak_bytes(lambda: torch.histogramdd(points, [16, 16])) < points.nbytes / 10


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
