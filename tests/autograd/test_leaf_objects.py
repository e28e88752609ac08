"""The node of a leaf knows the object that the program has, however the leaf was made."""

from __future__ import annotations

import pytest

import msadapter as torch


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(2, requires_grad=True),
        lambda: torch.randn(2, requires_grad=True),
        lambda: torch.tensor([1.0, 2.0], requires_grad=True),
        lambda: torch.nn.Parameter(torch.ones(2)),
    ],
)
def test_the_variable_is_the_leaf(make) -> None:
    leaf = make()
    assert (leaf * 2).grad_fn.next_functions[0][0].variable is leaf


def test_a_leaf_that_needs_no_gradient_any_more_is_written_in_place() -> None:
    leaf = torch.nn.Parameter(torch.ones(3)).requires_grad_(False)
    assert leaf.normal_() is leaf
