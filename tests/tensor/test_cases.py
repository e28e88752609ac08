"""Cases of the Tensor class, compared with the answers recorded from PyTorch."""

from __future__ import annotations

import sys

import pytest

import msadapter as torch
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("tensor")


@pytest.mark.parametrize("name", CASES)
def test_case(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch)  # pickles name classes by torch's modules
    check("tensor", name, CASES[name], torch)
