"""Reductions, scans and sorting as recorded from real PyTorch (tests/golden/expressions/structure.py)."""

from __future__ import annotations

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("reduction")


@together(CASES)
def test_recorded_answer(case):
    check("reduction", case, CASES[case], torch)
