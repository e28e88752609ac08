"""The Tensor contract, case by case, against the answers recorded from PyTorch."""
from __future__ import annotations

import indexing_cases
import pytest
import tensor_cases
from contracts import cases_of, difference, golden, outcome

import msadapter as torch

RECORDED = golden("tensor")
CASES = [(module.__name__, name, case) for module in (tensor_cases, indexing_cases) for name, case in cases_of(module).items()]


@pytest.mark.parametrize(("module", "name", "case"), CASES, ids=[name for _, name, _ in CASES])
def test_case(module, name, case):
    assert difference(outcome(case, torch), RECORDED[module][name]) is None
