"""torch.masked, torch.gradient, torch.hash_tensor and torch.ops.aten against the answers recorded from PyTorch."""

from __future__ import annotations

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("masked")


@together(CASES)
def test_case(case):
    check("masked", case, CASES[case], torch)
