"""Element-wise operators against recorded answers of real PyTorch: see tests/golden/expressions/pointwise.py."""

from __future__ import annotations

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("pointwise")


@together(CASES)
def test_case(case):
    check("pointwise", case, CASES[case], torch)
