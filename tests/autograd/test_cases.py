"""The autograd contract, case by case, against the answers recorded from PyTorch."""

from __future__ import annotations

import function_cases
import graph_cases
import hook_cases
import pytest
from contracts import cases_of, difference, golden, outcome

import msadapter as torch

RECORDED = golden("autograd")
PENDING = {  # what is known to differ; a case that agrees again must leave this list
    "grad_of_unused": "the message does not name the tensor's index",
    "view_made_in_no_grad": "requires_grad of a view made in no_grad",
    "hook_errors": "messages for wrong answers of hooks",
    "multi_grad_hook": "tensors outside the running graph are waited for",
}


def _parameters():
    for module in (graph_cases, function_cases, hook_cases):
        for name, case in cases_of(module).items():
            marks = [pytest.mark.xfail(reason=PENDING[name], strict=True)] if name in PENDING else []
            yield pytest.param(module.__name__, name, case, id=name, marks=marks)


@pytest.mark.parametrize(("module", "name", "case"), _parameters())
def test_case(module, name, case):
    assert difference(outcome(case, torch), RECORDED[module][name]) is None
