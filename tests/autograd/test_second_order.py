"""Gradients of gradients of every operator of PyTorch's sample database that has them, against PyTorch's numbers."""

from __future__ import annotations

import math
import re
import warnings

import pytest
import second_order

import msadapter as torch

CASES, ARRAYS = second_order.load()

# name (a pattern) -> why the answer is not PyTorch's
DIFFERENT = {r"linalg\.eigh-\d": "eigenvectors have either sign: see test_eigenvectors"}


@pytest.mark.parametrize("name", CASES)
def test_second_order(name):
    reason = next((why for pattern, why in DIFFERENT.items() if re.fullmatch(pattern, name)), None)
    if reason:
        pytest.skip(reason)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = second_order.answer(torch, CASES[name], ARRAYS)
    expected = CASES[name]["answer"]
    for ours, theirs in zip(found, expected, strict=True):
        assert math.isclose(ours, theirs, rel_tol=1e-6, abs_tol=1e-6 * max(1, *map(abs, expected))), (
            found,
            expected,
        )


def test_eigenvectors():
    """The projection on the first eigenvectors has no sign."""
    A = torch.tensor(
        [[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, -1.0]], dtype=torch.float64, requires_grad=True
    )

    def projection(A):
        L, V = torch.linalg.eigh((A + A.mT) / 2)
        return V[:, :2] * L[:2] @ V[:, :2].mT

    assert torch.autograd.gradgradcheck(projection, (A,))
