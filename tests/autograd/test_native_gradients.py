"""Gradients that exist twice, as a Python formula and in C++, give the same numbers.

The C++ gradient runs in an ordinary backward; the Python formula where a graph of the gradient is asked for.
"""

from __future__ import annotations

import pytest

import msadapter as torch
from msadapter._host.native import load

F = torch.nn.functional
_LABELS = torch.tensor([2, 0, -100, 1])
_WORDS = torch.tensor([[1, 0, 3], [3, 3, 2]])

# By the name of the operator: the shapes of the inputs, and a function of them.
CASES = {
    "add": [
        ([(3, 4), (4,)], lambda a, b: a + b),
        ([(3, 1), (2, 1, 4)], lambda a, b: torch.add(a, b, alpha=3)),
        ([(3,)], lambda a: a + 2),
        ([(3,), ()], lambda a, b: torch.add(2.0, b, alpha=-2) + a),
    ],
    "sub": [
        ([(3, 4), (4,)], lambda a, b: a - b),
        ([(3, 1), (2, 1, 4)], lambda a, b: torch.sub(a, b, alpha=0.5)),
        ([(3,)], lambda a: 2 - a),
    ],
    "mul": [
        ([(3, 4), (4,)], lambda a, b: a * b),
        ([(3, 1), (2, 1, 4)], lambda a, b: a * b),
        ([(3,)], lambda a: a * 3),
        ([(3,)], lambda a: -2.5 * a),
        ([(3,)], lambda a: a * a),
    ],
    "true_divide": [
        ([(3, 4), (4,)], lambda a, b: a / (b + 9)),
        ([(3, 1), (2, 1, 4)], lambda a, b: a / (b - 9)),
        ([(3,)], lambda a: a / 3),
        ([(3,)], lambda a: 3 / (a + 9)),
    ],
    "neg": [([(3, 4)], lambda a: -a)],
    "mm": [
        ([(3, 4), (4, 2)], lambda a, b: a.mm(b)),
        ([(4, 3), (4, 2)], lambda a, b: a.t().mm(b)),
        ([(3, 4), (2, 4)], lambda a, b: a.mm(b.t())),
        ([(3, 0), (0, 2)], lambda a, b: a.mm(b)),
    ],
    "bmm": [
        ([(2, 3, 4), (2, 4, 5)], lambda a, b: a.bmm(b)),
        ([(2, 4, 3), (2, 5, 4)], lambda a, b: a.mT.bmm(b.mT)),
    ],
    "view": [([(3, 4)], lambda a: a.view(2, 6)), ([(3, 4)], lambda a: a.view(-1))],
    "unsqueeze": [([(3, 4)], lambda a: a.unsqueeze(1)), ([(3, 4)], lambda a: a.unsqueeze(-1))],
    "transpose": [([(2, 3, 4)], lambda a: a.transpose(0, -1)), ([(2, 3, 4)], lambda a: a.transpose(1, 1))],
    "t": [([(3, 4)], lambda a: a.t()), ([(3,)], lambda a: a.t())],
    "select": [([(2, 3, 4)], lambda a: a.select(1, -1)), ([(3,)], lambda a: a[0])],
    "_slice": [([(5, 3)], lambda a: a[1:4:2]), ([(2, 5)], lambda a: torch.narrow(a, 1, 2, 3))],
    "_region": [([(5, 4, 3)], lambda a: a[1:, None, 2, ::2]), ([(5, 4)], lambda a: a[..., -2:])],
    "sum": [
        ([(3, 4)], lambda a: a.sum()),
        ([(2, 3, 4)], lambda a: a.sum((2, 0))),
        ([(2, 3, 4)], lambda a: a.sum((-1, 0), keepdim=True)),
        ([(3, 4)], lambda a: a.sum(1, dtype=torch.float64)),
        ([()], lambda a: a.sum(0)),
    ],
    "mean": [
        ([(3, 4)], lambda a: a.mean()),
        ([(2, 3, 4)], lambda a: a.mean((2, 0))),
        ([(2, 3, 4)], lambda a: a.mean((-1, 0), keepdim=True)),
        ([(3, 4)], lambda a: a.mean(1, dtype=torch.float64)),
    ],
    "_to_dtype": [([(3, 4)], lambda a: a.to(torch.float64)), ([(3, 4)], lambda a: a.bfloat16())],
    "expand": [([(3, 1)], lambda a: a.expand(2, 3, 4)), ([(1,)], lambda a: a.expand(0))],
    "clone": [([(3, 4)], lambda a: a.clone()), ([(3, 4)], lambda a: a.t().clone())],
    "_contiguous_copy": [([(3, 4)], lambda a: a.t().contiguous())],
    "_unsafe_view": [
        ([(2, 3, 4), (4, 5)], lambda a, b: a @ b),
        ([(3, 4)], lambda a: torch._unsafe_view(a, (12,))),
    ],
    "squeeze": [
        ([(3, 1, 4, 1)], lambda a: a.squeeze()),
        ([(3, 1, 4, 1)], lambda a: a.squeeze(1)),
        ([(3, 1, 4, 1)], lambda a: a.squeeze((-1, 0))),
    ],
    "permute": [([(2, 3, 4)], lambda a: a.permute(2, 0, 1)), ([(2, 3, 4)], lambda a: a.permute(-2, -1, 0))],
    "_gelu": [
        ([(3, 4)], lambda a: F.gelu(a)),
        ([(3, 4)], lambda a: F.gelu(a * 4, approximate="tanh")),
    ],
    "_silu": [([(3, 4)], lambda a: F.silu(a * 4))],
    "relu": [([(3, 4)], lambda a: F.relu(a))],
    "tanh": [([(3, 4)], lambda a: torch.tanh(a))],
    "sigmoid": [([(3, 4)], lambda a: torch.sigmoid(a * 5))],
    "softmax": [
        ([(2, 3, 4)], lambda a: a.softmax(-1)),
        ([(2, 3, 4)], lambda a: a.softmax(1)),
        ([(3, 4)], lambda a: a.softmax(0, dtype=torch.float64)),
    ],
    "log_softmax": [
        ([(2, 3, 4)], lambda a: a.log_softmax(-1)),
        ([(2, 3, 4)], lambda a: a.log_softmax(0)),
        ([(3, 4)], lambda a: a.log_softmax(1, dtype=torch.float64)),
    ],
    "_layer_norm": [
        ([(2, 3, 4), (4,), (4,)], lambda a, w, b: F.layer_norm(a, (4,), w, b, 0.3)),
        ([(2, 3, 4), (3, 4), (3, 4)], lambda a, w, b: F.layer_norm(a, (3, 4), w, b)),
        ([(2, 3, 4)], lambda a: F.layer_norm(a, (4,), eps=2.0)),
        ([(2, 3, 4), (4,)], lambda a, w: F.layer_norm(a, (4,), w)),
        ([(2, 3, 4), (4,)], lambda a, b: F.layer_norm(a, (4,), None, b)),
    ],
    "_cross_entropy": [
        ([(4, 3)], lambda a: F.cross_entropy(a, _LABELS)),
        ([(4, 3)], lambda a: F.cross_entropy(a, _LABELS, reduction="sum", label_smoothing=0.3)),
        ([(4, 3)], lambda a: F.cross_entropy(a, _LABELS, torch.tensor([0.5, 2.0, 3.0]).to(a.dtype))),
        (
            [(4, 3)],
            lambda a: F.cross_entropy(
                a,
                _LABELS.abs() % 3,
                torch.tensor([0.5, 2.0, 3.0]).to(a.dtype),
                label_smoothing=0.2,
                ignore_index=1,
            ),
        ),
        ([(4, 3)], lambda a: F.cross_entropy(a, _LABELS, reduction="none")),
        ([(2, 3, 2)], lambda a: F.cross_entropy(a, _LABELS.reshape(2, 2), ignore_index=-100)),
    ],
    "_embedding": [
        ([(5, 3)], lambda w: F.embedding(_WORDS, w)),
        ([(5, 3)], lambda w: F.embedding(_WORDS, w, padding_idx=0)),
        ([(5, 3)], lambda w: F.embedding(_WORDS, w, padding_idx=3, scale_grad_by_freq=True)),
        ([(5, 3)], lambda w: F.embedding(_WORDS, w, scale_grad_by_freq=True)),
    ],
    "index_select": [
        ([(4, 3)], lambda a: a.index_select(0, torch.tensor([1, 3, 1]))),
        ([(2, 4, 3)], lambda a: a.index_select(-2, torch.tensor([1, 3, 1, 1]))),
    ],
    "nn.functional.linear": [
        ([(2, 3, 4), (5, 4), (5,)], lambda a, w, b: F.linear(a, w, b)),
        ([(3, 4), (5, 4)], lambda a, w: F.linear(a, w)),
        ([(4,), (5, 4), (5,)], lambda a, w, b: F.linear(a, w, b)),
    ],
    "_cat": [
        ([(2, 3), (2, 1), (2, 0)], lambda *x: torch.cat(x, -1)),
        ([(1, 3), (4, 3)], lambda *x: torch.cat(x, 0)),
    ],
}
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2e-2}


def test_every_gradient_in_cpp_is_compared():
    assert set(load().native_entries()["gradient"]) == CASES.keys()


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize(
    ("name", "row"), [(name, row) for name, rows in CASES.items() for row in range(len(rows))]
)
def test_both_gradients(name, row, dtype):
    shapes, function = CASES[name][row]
    generator = torch.Generator().manual_seed(row)
    leaves = [torch.randn(s, generator=generator).to(dtype).requires_grad_() for s in shapes]
    result = function(*leaves)
    seed = torch.randn(result.shape, generator=generator).to(result.dtype)
    spread = torch.stack([seed, seed], -1)[..., 0]  # the same numbers with other strides
    for wanted in {tuple(range(len(leaves))), (0,), (len(leaves) - 1,)}:
        inputs = [leaves[i] for i in wanted]
        for given in (seed, spread):
            native = torch.autograd.grad(result, inputs, given, retain_graph=True)
            formula = torch.autograd.grad(result, inputs, given, create_graph=True)
            for a, b, leaf in zip(native, formula, inputs, strict=True):
                assert a.dtype == b.dtype == leaf.dtype and a.shape == b.shape == leaf.shape
                torch.testing.assert_close(a, b.detach(), rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype])
