"""Warnings of operators, layers and loaders, compared with those recorded from PyTorch."""

from __future__ import annotations

import warnings

import pytest

import msadapter as torch
from msadapter._host import warn
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("warnings")


@pytest.mark.parametrize("name", CASES)
def test_case(name):
    check("warnings", name, CASES[name], torch)


@pytest.fixture
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """No warning was shown in this process."""
    monkeypatch.setattr(warn, "_shown", set())


def test_a_deprecated_operator_warns_once_at_the_line_that_calls_it(forgotten) -> None:
    x = torch.eye(2)
    with pytest.warns(UserWarning, match="torch.qr is deprecated in favor of torch.linalg.qr") as seen:
        torch.qr(x)
        torch.qr(x)
    assert [one.filename for one in seen] == [__file__]


def test_a_method_of_a_storage_does_not_warn_but_the_typed_storage_does(forgotten) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.ones(2).untyped_storage().nbytes() == 8
        assert torch.ones(2)._typed_storage().tolist() == [1.0, 1.0]
    with pytest.warns(UserWarning, match="TypedStorage is deprecated") as seen:
        assert torch.ones(2).storage().tolist() == [1.0, 1.0]
    assert [one.filename for one in seen] == [__file__]
    torch.FloatStorage(3)  # once in a process
