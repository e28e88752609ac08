"""torch.nested against the recorded answers of PyTorch, and attacks on files with nested tensors."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("nested")


@pytest.fixture(autouse=True)
def _names(torch_by_name):
    """Make `import torch` return this project, because tensors are pickled under torch's names."""


@together(CASES)
def test_case(case):
    check("nested", case, CASES[case], torch)
