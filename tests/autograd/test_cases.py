"""Cases of autograd, compared with the answers recorded from PyTorch."""

from __future__ import annotations

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("autograd")


@together(CASES)
def test_case(name):
    check("autograd", name, CASES[name], torch)
