"""Schedules, rules and states with options away from their defaults, compared with the answers of PyTorch."""

from __future__ import annotations

import sys

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("optim_cases")


@together(CASES)
def test_case(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch)  # pickles name classes by torch's modules
    check("optim_cases", name, CASES[name], torch)
