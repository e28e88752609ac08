"""torch.masked, torch.gradient, torch.hash_tensor and torch.ops.aten against the answers recorded from PyTorch."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.golden.contracts import difference, golden, outcome
from tests.masked import masked_cases

RECORDED = golden("masked")["masked_cases"]


@pytest.mark.parametrize("case", list(masked_cases.CASES))
def test_case(case):
    tolerance = 1e-3 if "half" in case else 1e-6
    assert difference(outcome(masked_cases.CASES[case], torch), RECORDED[case], tolerance) is None
