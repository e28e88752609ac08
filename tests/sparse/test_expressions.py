"""Sparse tensors against the recorded answers of real PyTorch: tests/golden/expressions/sparse.py."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("sparse")


@pytest.fixture(autouse=True)
def _names(torch_by_name):
    """Make `import torch` return this project, because tensors are pickled under torch's names."""


@together(CASES)
def test_case(case):
    check("sparse", case, CASES[case], torch)
