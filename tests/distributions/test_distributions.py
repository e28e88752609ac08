"""torch.distributions, compared with the answers recorded from PyTorch. Seeds must give PyTorch's samples."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("distributions")


@pytest.fixture(autouse=True)
def _names(torch_by_name):
    """Make `import torch` return this project, because the cases import torch by name."""


@pytest.mark.parametrize("case", CASES)
def test_case(case):
    check("distributions", case, CASES[case], torch)


def test_an_inverse_is_of_the_class_that_libraries_ask_for():
    """pyro's tests ask for it by this name."""
    transforms = torch.distributions.transforms
    inverse = transforms.ExpTransform().inv
    assert isinstance(inverse, transforms._InverseTransform) and inverse.inv.inv is inverse
