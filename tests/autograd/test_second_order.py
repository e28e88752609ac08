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


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("general", [False, True])
def test_lobpcg_depends_on_both_triangles(largest, general):
    torch.manual_seed(5)
    a, b = (torch.rand(7, 7, dtype=torch.float64) for _ in range(2))
    a = ((a @ a.mT) / 10).requires_grad_()
    b = (b @ b.mT + torch.eye(7)).requires_grad_() if general else None

    def values_and_sizes(*matrices):
        values, vectors = torch.lobpcg(matrices[0], 2, matrices[1] if general else None, largest=largest)
        return values, vectors.abs()  # the sign of a vector is free

    matrices = (a, b) if general else (a,)
    assert torch.autograd.gradcheck(values_and_sizes, matrices, atol=1e-5)
    grads = torch.autograd.grad(values_and_sizes(*matrices)[0].sum(), matrices)
    assert all(torch.allclose(g, g.mT) for g in grads)
