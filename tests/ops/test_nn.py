"""Norms, losses, attention, convolution ... against recorded answers of real PyTorch (tests/golden/nn_ops_cases.py)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import msadapter as torch

_SPEC = importlib.util.spec_from_file_location("nn_answers", Path(__file__).with_name("nn_answers.py"))
nn_answers = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(nn_answers)
ANSWERS, MATMUL, check_case = nn_answers.ANSWERS, nn_answers.MATMUL, nn_answers.check_case

F = torch.nn.functional


@pytest.mark.parametrize("case", [c for c in ANSWERS if c not in MATMUL])
def test_case(case):
    check_case(case)


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
