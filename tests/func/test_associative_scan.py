"""torch._higher_order_ops.associative_scan against a loop over the slices."""

from __future__ import annotations

import pytest

import msadapter as torch
from msadapter._higher_order_ops import associative_scan


def in_a_loop(combine, tensors, dim, reverse):
    """Each prefix combined from left to right, one slice after the other."""
    slices = list(zip(*(x.unbind(dim) for x in tensors), strict=True))
    found = []
    for one in reversed(slices) if reverse else slices:
        found.append(one if not found else combine(found[-1], one))
    if reverse:
        found.reverse()
    return [torch.stack(part, dim) for part in zip(*found, strict=True)]


def recurrence(left, right):
    """The step of a state space model, as transformers' Mamba combines it. It does not commute."""
    return left[0] * right[0], right[0] * left[1] + right[1]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 7, 8, 13])
def test_a_recurrence_and_its_gradients(length, reverse):
    torch.manual_seed(length)
    inputs = [torch.rand(2, length, 3).requires_grad_(), torch.randn(2, length, 3).requires_grad_()]
    found = associative_scan(recurrence, tuple(inputs), 1, reverse=reverse, combine_mode="generic")
    expected = in_a_loop(recurrence, inputs, 1, reverse)
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-6)
    weight = torch.randn(2, length, 3)
    gradients = [
        torch.autograd.grad((x[1] * weight).sum(), inputs, allow_unused=True) for x in (found, expected)
    ]
    for one, other in zip(*gradients, strict=True):
        # with one slice, the result does not depend on the factor
        assert (one is None) == (other is None) and (one is None or torch.allclose(one, other, atol=1e-5))


@pytest.mark.parametrize("reverse", [False, True])
def test_products_of_matrices_in_nested_values(reverse):
    """A function sees single slices: without the scanned dim, a product of two matrices is one."""
    torch.manual_seed(3)
    matrices = torch.eye(3).unsqueeze(1) + torch.randn(3, 9, 3) * 0.2

    def combine(left, right):
        return {"m": [left["m"][0] @ right["m"][0]]}

    found = associative_scan(combine, {"m": [matrices]}, -2, reverse, "generic")["m"][0]
    (expected,) = in_a_loop(lambda a, b: (a[0] @ b[0],), [matrices], 1, reverse)
    assert torch.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "options", "kind", "message"),
    [
        ((3, torch.ones(2), 0), {}, ValueError, "Combine_fn must be a callable, but got 3"),
        ((torch.add, torch.ones(2), "a"), {}, ValueError, "Dim must be an int, but got <class 'str'>"),
        ((torch.add, torch.ones(2), 0, 1), {}, RuntimeError, "Reverse must be a bool, but got <class 'int'>"),
        ((torch.add, torch.ones(2), 0), {"combine_mode": "x"}, ValueError, "Combine_mode must either 'pointwise' or 'generic'"),
        ((torch.add, [torch.ones(2), 3], 0), {}, ValueError, "xs leaves must be a Tensor"),
        ((torch.add, [], 0), {}, ValueError, "Expected at least 1 xs leaf"),
        ((torch.add, torch.ones(2), 1), {}, IndexError, "Dimension out of range"),
        ((torch.add, torch.ones(0), 0), {}, ValueError, "All xs leaves must at least have 'dim' number of dimensions"),
        ((lambda a, b: (a, b), torch.ones(2), 0), {}, RuntimeError, "combine_fn must return a value of the form of xs"),
    ],
)  # fmt: skip
def test_wrong_arguments(arguments, options, kind, message):
    with pytest.raises(kind, match=message):
        associative_scan(*arguments, **{"combine_mode": "generic", **options})
