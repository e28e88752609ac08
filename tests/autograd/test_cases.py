"""Cases of autograd, compared with the answers recorded from PyTorch."""

from __future__ import annotations

import function_cases
import graph_cases
import hook_cases
import pytest
from contracts import cases_of, difference, golden, outcome

import msadapter as torch

RECORDED = golden("autograd")


def _parameters():
    for module in (graph_cases, function_cases, hook_cases):
        for name, case in cases_of(module).items():
            yield pytest.param(module.__name__, name, case, id=name)


@pytest.mark.parametrize(("module", "name", "case"), _parameters())
def test_case(module, name, case):
    assert difference(outcome(case, torch), RECORDED[module][name]) is None
