"""Operators with options away from their defaults, on rare branches, and their gradients, against PyTorch."""

from __future__ import annotations

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("op_options")


@together(CASES)
def test_case(name):
    check("op_options", name, CASES[name], torch)
