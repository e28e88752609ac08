"""Tensor has the methods that PyTorch's has, and no other form of an operator."""

from __future__ import annotations

import importlib
import math

import pytest

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


def test_python_operators_are_those_of_pytorch():
    """PyTorch has in-place forms for the augmented assignments of Python alone, and none for @=."""
    assignments = [
        "add",
        "and",
        "div",
        "floordiv",
        "lshift",
        "mod",
        "mul",
        "or",
        "pow",
        "rshift",
        "sub",
        "truediv",
        "xor",
    ]
    others = {"__index__", "__init__", "__init_subclass__", "__int__", "__invert__", "__iter__"}
    ours = {name for name in dir(torch.Tensor) if name.startswith("__i")}
    assert ours == {f"__i{name}__" for name in assignments} | others
    x = torch.tensor([3.0, 5.0])
    assert x.__idiv__(2) is x and x.tolist() == [1.5, 2.5]
    assert torch.tensor(2.5).__long__() == 2 and torch.tensor(2.5).__nonzero__() is True


def test_rounding_by_python_gives_its_numbers():
    """Also after MindSpore's own class of tensors, which has more special methods, has become a base of Tensor."""
    assert importlib.import_module("mindspore").Tensor([1.5]).shape == (1,)
    x = torch.tensor(-2.5)
    assert [type(round_(x)) for round_ in (math.ceil, math.floor)] == [int, int]
    assert (math.ceil(x), math.floor(x)) == (-2, -3)
    for round_ in (math.trunc, round):
        with pytest.raises(TypeError, match=f"type Tensor doesn't define __{round_.__name__}__ method"):
            round_(x)
        assert not hasattr(x, f"__{round_.__name__}__") and not hasattr(
            torch.Tensor, f"__{round_.__name__}__"
        )
