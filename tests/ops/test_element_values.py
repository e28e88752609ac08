"""Integers that overflow and bools of any byte, as PyTorch treats them: see tests/golden/expressions/element_values.py."""

from __future__ import annotations

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("element_values")


@together(CASES)
def test_case(case):
    check("element_values", case, CASES[case], torch)
