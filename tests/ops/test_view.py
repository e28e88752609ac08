"""Views, joins and copies as recorded from real PyTorch (tests/golden/expressions/structure.py)."""

from __future__ import annotations

import pytest

import msadapter as torch
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("view")


@together(CASES)
def test_recorded_answer(case):
    check("view", case, CASES[case], torch)


def test_view_copy_of_strides_that_allow_no_view():
    x = torch.arange(24.0).view(4, 6).t()
    assert torch.equal(torch.view_copy(x, (3, -1)), x.contiguous().view(3, -1))
    assert torch.view_copy(x.contiguous(), torch.int32).dtype is torch.int32
    assert torch.view_copy(x.contiguous(), dtype=torch.int64).shape == (6, 2)
    with pytest.raises(RuntimeError, match="is invalid for input of size 24"):
        torch.view_copy(x, (5,))
