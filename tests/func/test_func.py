"""torch.autograd.functional, gradcheck and torch.func against the answers recorded from PyTorch."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.func import func_cases, functional_cases
from tests.golden.contracts import cases_of, difference, golden, outcome

RECORDED = golden("func")
MODULES = {"functional_cases": functional_cases, "func_cases": func_cases}
CASES = [(module, name) for module, found in MODULES.items() for name in cases_of(found)]


def _without_strides(record):
    """The vectorised code of PyTorch leaves some results permuted, so strides are not compared."""
    if isinstance(record, dict):
        return {k: _without_strides(v) for k, v in record.items() if k != "stride"}
    return [_without_strides(v) for v in record] if isinstance(record, list) else record


@pytest.fixture(autouse=True)
def _names(torch_by_name):
    """The cases import torch by name."""


@pytest.mark.parametrize(("module", "case"), CASES, ids=[name for _, name in CASES])
def test_case(module, case):
    function = cases_of(MODULES[module])[case]
    ours, theirs = _without_strides(outcome(function, torch)), _without_strides(RECORDED[module][case])
    assert difference(ours, theirs) is None
