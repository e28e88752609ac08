"""torch's own functions for losses and recurrent cells agree with those of torch.nn, which are compared with
PyTorch.
"""

from __future__ import annotations

import pytest

import msadapter as torch

F = torch.nn.functional


def _tensors(count, *shape):
    torch.manual_seed(3)
    return [torch.randn(*shape) for _ in range(count)]


@pytest.mark.parametrize(("number", "name"), list(enumerate(("none", "mean", "sum"))))
def test_losses(number, name):
    x, y, z = _tensors(3, 4, 5)
    sign = torch.tensor([1, -1, 1, -1])
    pairs = [
        (
            torch.hinge_embedding_loss(x, y.sign(), 0.5, number),
            F.hinge_embedding_loss(x, y.sign(), 0.5, reduction=name),
        ),
        (
            torch.cosine_embedding_loss(x, y, sign, 0.1, number),
            F.cosine_embedding_loss(x, y, sign, 0.1, reduction=name),
        ),
        (
            torch.margin_ranking_loss(x, y, z.sign(), 0.1, number),
            F.margin_ranking_loss(x, y, z.sign(), 0.1, reduction=name),
        ),
        (
            torch.triplet_margin_loss(x, y, z, reduction=number),
            F.triplet_margin_loss(x, y, z, reduction=name),
        ),
        (
            torch.poisson_nll_loss(x, y.abs(), True, False, 1e-8, number),
            F.poisson_nll_loss(x, y.abs(), reduction=name),
        ),
    ]
    loss = F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="none")
    reduced = {"none": loss, "mean": loss.mean(), "sum": loss.sum()}[name]
    for found, expected in [*pairs, (torch.kl_div(x.log_softmax(-1), y.softmax(-1), number), reduced)]:
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", ["rnn_tanh", "rnn_relu", "gru", "lstm"])
def test_cell_function_agrees_with_the_cell_module(name):
    x, h, c = _tensors(3, 4, 5)
    kind, _, nonlinearity = name.partition("_")
    options = {"nonlinearity": nonlinearity} if nonlinearity else {}
    module = {"rnn": torch.nn.RNNCell, "gru": torch.nn.GRUCell, "lstm": torch.nn.LSTMCell}[kind](
        5, 5, **options
    )
    state = (h, c) if kind == "lstm" else h
    torch.testing.assert_close(
        getattr(torch, f"{name}_cell")(x, state, *module.parameters()), module(x, state)
    )


def test_norm_except_dim():
    (v,) = _tensors(1, 3, 4, 5)
    torch.testing.assert_close(torch.norm_except_dim(v, 2, 1), v.norm(dim=(0, 2), keepdim=True))
    torch.testing.assert_close(torch.norm_except_dim(v, 2, -1), v.norm())


def test_convolution_over_time():
    x, w, b = torch.randn(7, 2, 3), torch.randn(3, 3, 4), torch.randn(4)
    expected = F.conv1d(x.permute(1, 2, 0), w.permute(2, 1, 0), b, padding=1).permute(2, 0, 1)
    torch.testing.assert_close(torch.conv_tbc(x, w, b, 1), expected)
    assert torch.conv_tbc(x, w, b).shape == (5, 2, 4)
