"""Integers that no memory, tensor or 64-bit number holds, in every operator that takes an integer.

No crash, no hang, no result of a wrong size, and PyTorch's class of error.
"""

from __future__ import annotations

from functools import cache

import pytest

import msadapter as torch
from tests.golden import extreme_integers, store
from tests.golden.verdict import judge

GOLDEN = store.load("extreme_integers")
OPERATORS = list(dict.fromkeys(map(extreme_integers.operator, GOLDEN.cases)))


@cache
def _outcomes(block: int) -> dict[str, str]:
    """The outcomes of the operators of one block. Blocks save time, because starting a child process takes a moment."""
    cases, arrays = extreme_integers.load()
    chosen = set(OPERATORS[block * 40 : (block + 1) * 40])
    names = [name for name in cases if extreme_integers.operator(name) in chosen]
    return extreme_integers.run(torch, names, cases, arrays)


@pytest.mark.parametrize("operator", OPERATORS)
def test_extreme_integers(operator):
    found = _outcomes(OPERATORS.index(operator) // 40)
    for name, ours in found.items():
        if extreme_integers.operator(name) == operator:
            judge("extreme_integers", name, extreme_integers.differs(ours, GOLDEN.cases[name], name))
