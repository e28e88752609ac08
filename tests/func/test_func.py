"""torch.autograd.functional, gradcheck and torch.func against the answers recorded from PyTorch."""

from __future__ import annotations

import func_cases
import functional_cases
import pytest
from contracts import cases_of, difference, golden, outcome

import msadapter as torch

RECORDED = golden("func")
MODULES = (functional_cases, func_cases)
CASES = [(m.__name__, name) for m in MODULES for name in cases_of(m)]


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
    function = next(cases_of(m)[case] for m in MODULES if m.__name__ == module)
    ours, theirs = _without_strides(outcome(function, torch)), _without_strides(RECORDED[module][case])
    assert difference(ours, theirs) is None
