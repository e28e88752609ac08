"""torch.utils against the answers recorded from PyTorch."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("utils")


@pytest.fixture(autouse=True)
def _names(torch_by_name):
    """Make `import torch` return this project, because the cases import torch by name."""


@together(CASES)
def test_case(name):
    check("utils", name, CASES[name], torch)
