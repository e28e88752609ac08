"""Second derivatives of every operator in PyTorch's sample database that has them, compared with PyTorch's."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.batches import operator, together
from tests.golden import second_order, store
from tests.golden.verdict import check

GOLDEN = store.load("second_order")


@together(GOLDEN.cases, operator)
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


READS_ITS_RESULT = {  # the gradient of each is a function of its result
    **{name: (lambda x, name=name: getattr(x, name)(), lambda x, name=name: getattr(x, name + "_")())
       for name in ("exp", "exp2", "expm1", "reciprocal", "rsqrt", "sigmoid", "sqrt", "tan", "tanh")},
    "pow": (lambda x: 2.0**x, lambda x: torch.full_like(x, 2.0).pow_(x)),
    "elu": (lambda x: torch.nn.functional.elu(x - 0.5), lambda x: torch.nn.functional.elu_(x - 0.5)),
    "selu": (lambda x: torch.selu(x - 0.5), lambda x: torch.selu_(x - 0.5)),
    "celu": (lambda x: torch.celu(x - 0.5, 0.7), lambda x: torch.celu_(x - 0.5, 0.7)),
}  # fmt: skip


@pytest.mark.parametrize("name", READS_ITS_RESULT)
def test_in_place_functions_have_the_second_derivatives_of_the_others(name):
    """A result that is written in place is saved with its history."""
    x = torch.tensor([0.2, 0.3, 0.6, 0.9], dtype=torch.float64, requires_grad=True)

    def derivatives(function):
        (first,) = torch.autograd.grad((function(x * 1.5) * x).sum(), x, create_graph=True)
        return first, *torch.autograd.grad((first * x).sum(), x)

    plain, in_place = map(derivatives, READS_ITS_RESULT[name])
    for ours, expected in zip(in_place, plain, strict=True):
        assert torch.allclose(ours, expected, rtol=1e-12), (ours, expected)


def _writes_a_view(x):
    y = x * 1
    y[1:].sigmoid_()
    return y * x


def _writes_a_view_of_a_view(x):
    y = x.reshape(2, 2) * 1
    y.t()[1].tanh_()
    return y.sum() * x


@pytest.mark.parametrize("function", [_writes_a_view, _writes_a_view_of_a_view])
def test_second_derivatives_through_views_that_are_written_in_place(function):
    x = torch.tensor([0.2, 0.3, 0.6, 0.9], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(function, (x,))
