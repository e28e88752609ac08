"""ctc_loss by its definition: the sum over all alignments. Its other tests compare it with PyTorch's recorded answers."""

from __future__ import annotations

import itertools

import pytest

import msadapter as torch
from msadapter import autograd, func
from msadapter.nn import functional as F
from msadapter.ops import nn_ctc


def _collapsed(path, blank):
    """Return the labels that an alignment stands for: repetitions count once, blanks not at all."""
    return [k for k, _ in itertools.groupby(path) if k != blank]


def _by_definition(log_probs, target, blank):
    steps, classes = log_probs.shape
    paths = [
        p for p in itertools.product(range(classes), repeat=steps) if _collapsed(p, blank) == list(target)
    ]
    each = [sum(log_probs[t, k] for t, k in enumerate(p)) for p in paths]
    return -torch.logsumexp(torch.stack(each), 0)


@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("length", [1, 4, 5])
def test_sum_over_all_alignments(length, blank):
    other = [k for k in range(3) if k != blank]
    for target in ([], other[:1], other, [other[0]] * 2, [*other, other[0]]):
        if length < len(target) + sum(a == b for a, b in itertools.pairwise(target)):
            continue
        x = torch.randn(length, 3, dtype=torch.float64, requires_grad=True)
        labels = torch.tensor([target], dtype=torch.int64).reshape(1, len(target))
        found = F.ctc_loss(
            x.log_softmax(1).unsqueeze(1), labels, (length,), (len(target),), blank, reduction="sum"
        )
        expected = _by_definition(x.log_softmax(1), target, blank)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(*(autograd.grad(y, x, retain_graph=True)[0] for y in (found, expected)))


@pytest.mark.parametrize(("kind", "near"), [(torch.float32, 2e-4), (torch.float64, 1e-10)])
def test_kernel_agrees_with_ordinary_operators(kind, near):
    steps, batch, classes, longest = 37, 11, 23, 9
    scores = torch.randn(steps, batch, classes, dtype=kind).mul(3).log_softmax(2).requires_grad_()
    lengths = torch.randint(0, longest + 1, (batch,))
    inputs = torch.randint(2 * longest, steps + 1, (batch,))
    targets = torch.randint(1, classes, (batch, longest))
    targets[::2, 3] = targets[::2, 2]  # a repetition
    labels = nn_ctc._labels_of_states(nn_ctc._padded_targets(targets, lengths, 0), 0)
    expected = nn_ctc._loss_of_operators(scores, labels, inputs, lengths)
    found = F.ctc_loss(scores, targets, inputs, lengths, reduction="none")
    torch.testing.assert_close(found, expected, rtol=near, atol=near)
    weights = torch.linspace(-1, 1, batch, dtype=kind)
    one, two = (autograd.grad(y, scores, weights)[0] for y in (found, expected))
    torch.testing.assert_close(one, two, rtol=near, atol=near)


def test_second_derivatives():
    x = torch.randn(6, 2, 4, dtype=torch.float64, requires_grad=True)

    def loss(x):
        return F.ctc_loss(x.log_softmax(2), torch.tensor([[1, 1], [2, 3]]), (6, 5), (2, 2), reduction="none")

    assert autograd.gradcheck(loss, x)
    assert autograd.gradgradcheck(loss, x)


def test_vmap_over_scores():
    x = torch.randn(3, 6, 2, 4, dtype=torch.float64)

    def loss(x):
        return F.ctc_loss(x.log_softmax(2), torch.tensor([[1, 1], [2, 3]]), (6, 5), (2, 2))

    torch.testing.assert_close(func.vmap(loss)(x), torch.stack([loss(part) for part in x]))
    each = torch.stack([func.grad(loss)(part) for part in x])
    torch.testing.assert_close(func.vmap(func.grad(loss))(x), each)


def test_the_loss_is_one_node():
    loss = F.ctc_loss(
        torch.randn(9, 2, 4).log_softmax(2).requires_grad_(),
        torch.tensor([[1], [2]]),
        (9, 8),
        (1, 1),
        reduction="none",
    )
    assert loss.grad_fn.name() == "CtcLossBackward0"


@pytest.mark.parametrize("label", [-1, 4])
def test_labels_must_be_classes(label):
    with pytest.raises(RuntimeError, match=f"index {label} is out of bounds for dimension 2 with size 4"):
        F.ctc_loss(torch.randn(5, 1, 4).log_softmax(2), torch.tensor([[1, label]]), (5,), (2,))
