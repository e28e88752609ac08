"""Products against recorded answers of real PyTorch (tests/golden/nn_ops_cases.py), and what they cost in memory."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import msadapter as torch

_SPEC = importlib.util.spec_from_file_location("nn_answers", Path(__file__).with_name("nn_answers.py"))
nn_answers = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(nn_answers)
ANSWERS, MATMUL, check_case = nn_answers.ANSWERS, nn_answers.MATMUL, nn_answers.check_case


@pytest.mark.parametrize("case", [c for c in ANSWERS if c in MATMUL])
def test_case(case):
    check_case(case)


def test_large_product_does_not_depend_on_threads():
    a, b = torch.randn(300, 513), torch.randn(513, 257)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        one = torch.mm(a, b)
        torch.set_num_threads(3)
        assert torch.equal(torch.mm(a, b), one)
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize("shape", [(1, 700, 900), (257, 300, 1), (129, 513, 65)])
@pytest.mark.parametrize("transposed", [False, True])
def test_blocks_and_edges(shape, transposed):
    m, k, n = shape
    a = torch.randn(k, m).t() if transposed else torch.randn(m, k)
    b = torch.randn(n, k).t() if transposed else torch.randn(k, n)
    torch.testing.assert_close(
        torch.mm(a, b).double(), torch.mm(a.double(), b.double()), rtol=1e-4, atol=1e-4
    )


def test_gradient_over_an_empty_inner_dim():
    a, b = torch.ones(2, 3, 0, requires_grad=True), torch.ones(0, 5, requires_grad=True)
    out = a @ b
    out.sum().backward()
    assert out.eq(0).all() and a.grad.shape == (2, 3, 0) and b.grad.shape == (0, 5)
    w = torch.ones(5, 0, requires_grad=True)
    torch.nn.functional.linear(a, w).sum().backward()
    assert w.grad.shape == (5, 0)
