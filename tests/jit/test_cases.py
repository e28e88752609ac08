"""torch.jit against the answers recorded from PyTorch."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("jit")


@pytest.fixture(autouse=True)
def _names(torch_by_name):
    """Make `import torch` return this project, because some cases import torch by name."""


@together(CASES)
def test_case(name):
    check("jit", name, CASES[name], torch)
