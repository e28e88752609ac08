"""Schedules, rules and states with options away from their defaults, compared with the answers of PyTorch."""

from __future__ import annotations

import sys

import pytest

import msadapter as torch
from tests.golden.contracts import cases_of, difference, golden, outcome
from tests.optim import rule_cases, schedule_cases, search_cases

RECORDED = golden("optim_cases")


def _parameters():
    for module in (schedule_cases, rule_cases, search_cases):
        for name, case in cases_of(module).items():
            yield pytest.param(module.__name__.rpartition(".")[2], name, case, id=name)


@pytest.mark.parametrize(("module", "name", "case"), _parameters())
def test_case(module, name, case, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch)  # pickles name classes by torch's modules
    assert difference(outcome(case, torch), RECORDED[module][name]) is None
