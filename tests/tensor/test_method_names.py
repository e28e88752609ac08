"""Tensor has the methods that PyTorch's has, and no other form of an operator."""

from __future__ import annotations

import msadapter as torch
from msadapter.ops import _declare
from tests.golden import store

THEIRS = set(store.load("surface").cases["names torch.Tensor"])
# In-place forms that the operators of lists of tensors (_foreach_clamp_min_, _foreach_clamp_max_) are made of.
OF_LISTS = {"maximum_", "minimum_"}


def test_no_operator_is_a_method_that_pytorch_has_not():
    names = {name.rpartition(".")[2] for name in _declare.declarations} | {
        alias.rpartition(".")[2]
        for d in _declare.declarations.values()
        for alias in getattr(d, "aliases", ())
    }
    # After a test has used MindSpore's own tensors, dir also lists names of theirs, which Tensor hides.
    ours = {n for n in dir(torch.Tensor) if not n.startswith("_") and hasattr(torch.Tensor, n)}
    further = {n for n in ours - THEIRS if n in names or n.removesuffix("_") in names}
    assert further == OF_LISTS


def test_operators_are_methods_where_pytorch_has_them():
    declared = {name for name in _declare.declarations if "." not in name and not name.startswith("_")}
    missing = {n for n in THEIRS - set(dir(torch.Tensor)) if n.removesuffix("_") in declared}
    assert missing == set()
