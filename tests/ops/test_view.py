"""Views, joins and copies as recorded from real PyTorch (tests/golden/structure_cases.py)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import msadapter as torch

_SPEC = importlib.util.spec_from_file_location(
    "structure_answers", Path(__file__).with_name("structure_answers.py")
)
structure = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(structure)


@pytest.mark.parametrize("case", structure.ANSWERS["view"])
def test_recorded_answer(case):
    structure.check(case, structure.ANSWERS["view"][case])


def test_view_copy_of_strides_that_allow_no_view():
    x = torch.arange(24.0).view(4, 6).t()
    assert torch.equal(torch.view_copy(x, (3, -1)), x.contiguous().view(3, -1))
    assert torch.view_copy(x.contiguous(), torch.int32).dtype is torch.int32
    assert torch.view_copy(x.contiguous(), dtype=torch.int64).shape == (6, 2)
    with pytest.raises(RuntimeError, match="is invalid for input of size 24"):
        torch.view_copy(x, (5,))
