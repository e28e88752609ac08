"""Second derivatives of every operator in PyTorch's sample database that has them, compared with PyTorch's."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.golden import second_order, store
from tests.golden.verdict import check

GOLDEN = store.load("second_order")


@pytest.mark.parametrize("name", GOLDEN.cases)
def test_second_order(name):
    case = GOLDEN.cases[name]
    check("second_order", name, lambda torch: second_order.answer(torch, case, GOLDEN.arrays), torch)


def test_eigenvectors():
    """The projection on the first eigenvectors does not depend on their signs."""
    A = torch.tensor(
        [[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, -1.0]], dtype=torch.float64, requires_grad=True
    )

    def projection(A):
        L, V = torch.linalg.eigh((A + A.mT) / 2)
        return V[:, :2] * L[:2] @ V[:, :2].mT

    assert torch.autograd.gradgradcheck(projection, (A,))
