"""Values and first derivatives of PyTorch's own samples of every operator, with options away from their defaults."""

from __future__ import annotations

import warnings

import pytest

import msadapter as torch
from tests.golden import samples, second_order
from tests.golden.verdict import judge, tolerance, unused

CASES, ARRAYS = second_order.load(samples.FILE)


@pytest.mark.parametrize("name", CASES)
def test_sample(name):
    case = CASES[name]
    torch.manual_seed(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = samples.answer(torch, case, ARRAYS)
        except Exception as error:
            difference = f"{type(error).__name__}: {error}"
        else:
            difference = samples.differs(found, case["answer"], tolerance)
    judge("samples", name, difference)


def test_known_failures_name_cases():
    assert unused("samples", CASES) == []
