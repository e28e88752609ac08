"""Second derivatives of every operator in PyTorch's sample database that has them, compared with PyTorch's."""

from __future__ import annotations

import math
import warnings

import pytest

import msadapter as torch
from tests.golden import second_order
from tests.golden.verdict import judge, unused

CASES, ARRAYS = second_order.load()


@pytest.mark.parametrize("name", CASES)
def test_second_order(name):
    expected = CASES[name]["answer"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = second_order.answer(torch, CASES[name], ARRAYS)
        except Exception as error:
            judge("second_order", name, f"{type(error).__name__}: {error}")
            return
    # A product of three derivatives: rounding counts against the largest of the four numbers.
    scale = 1e-6 * max(1, *map(abs, expected))
    same = all(math.isclose(a, b, rel_tol=1e-6, abs_tol=scale) for a, b in zip(found, expected, strict=True))
    judge("second_order", name, None if same else f"{found} instead of {expected}")


def test_known_failures_name_cases():
    assert unused("second_order", CASES) == []


def test_eigenvectors():
    """The projection on the first eigenvectors does not depend on their signs."""
    A = torch.tensor(
        [[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, -1.0]], dtype=torch.float64, requires_grad=True
    )

    def projection(A):
        L, V = torch.linalg.eigh((A + A.mT) / 2)
        return V[:, :2] * L[:2] @ V[:, :2].mT

    assert torch.autograd.gradgradcheck(projection, (A,))
