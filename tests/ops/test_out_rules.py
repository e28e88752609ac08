"""Which operands and results a call with out= refuses: see tests/golden/out_rules.py."""

from __future__ import annotations

import functools

import pytest

import msadapter as torch
from tests import batches
from tests.golden import out_rules, store
from tests.golden.verdict import judge, unused

GOLDEN = store.load("out_rules").cases


CASES = [(name, case) for name, cases in GOLDEN.items() for case in cases]


@pytest.mark.parametrize("name", GOLDEN)
def test_out_rules(name):
    ours = out_rules.answer(torch, name)
    assert ours is not None, f"{name} does not succeed with ordinary results"
    batches.run(list(GOLDEN[name]), functools.partial(_compare, name, ours))


def _compare(name: str, ours: dict[str, str], case: str) -> None:
    theirs = GOLDEN[name][case]
    difference = None if ours[case] == theirs else f"{ours[case]} instead of {theirs}"
    judge("out_rules", f"{out_rules.operator(name)}: {case}", difference)


def test_known_failures_name_cases():
    assert unused("out_rules", [f"{out_rules.operator(name)}: {case}" for name, case in CASES]) == []


def test_an_integer_of_a_composite_must_fit_64_bits():
    with pytest.raises((ValueError, TypeError), match="Overflow when unpacking long"):
        torch.nonzero_static(torch.ones(2), size=2**64)
    with pytest.raises(TypeError, match="Overflow when unpacking long"):
        torch.broadcast_to(torch.ones(2), [2**64, 2])
