"""Every case of ``cases.py``: initial values, outputs, gradients, states and text must equal PyTorch's."""

import pytest

import msadapter as torch
from tests.golden import store
from tests.golden.answers import record
from tests.golden.verdict import compare
from tests.nn import cases


def test_every_case_has_golden_data():
    assert set(store.load("nn_cases").cases) == {*cases.CASES, *(f"init {name}" for name in cases.CASES)}


@pytest.mark.parametrize("name", cases.CASES)
def test_case(name):
    first, rest = cases.divided(record(cases.answer(torch, name)))
    compare("nn_cases", f"init {name}", first)
    compare("nn_cases", name, rest)
