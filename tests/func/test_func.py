"""torch.autograd.functional, gradcheck and torch.func against the answers recorded from PyTorch."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("func")


@pytest.fixture(autouse=True)
def _names(torch_by_name):
    """Make `import torch` return this project, because the cases import torch by name."""


@together(CASES)
def test_case(case):
    check("func", case, CASES[case], torch)
