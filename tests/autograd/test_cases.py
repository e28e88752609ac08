"""Cases of autograd, compared with the answers recorded from PyTorch."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.autograd import function_cases, graph_cases, hook_cases
from tests.golden.contracts import cases_of, difference, golden, outcome

RECORDED = golden("autograd")


def _parameters():
    for module in (graph_cases, function_cases, hook_cases):
        for name, case in cases_of(module).items():
            yield pytest.param(module.__name__.rpartition(".")[2], name, case, id=name)


@pytest.mark.parametrize(("module", "name", "case"), _parameters())
def test_case(module, name, case):
    assert difference(outcome(case, torch), RECORDED[module][name]) is None
