"""PyTorch's own operator samples get PyTorch's answers here (float32), but for the known failures.

Needs MSADAPTER_CONFORMANCE: the folder of run_conformance.py and its golden answers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.samples import ROOT, report_of
from tests.golden.verdict import judge, unused

CHECKS = ("forward", "grad", "inplace", "method")


@pytest.fixture(scope="module")
def report(conformance: Path, tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("conformance")
    return report_of(conformance, folder, "float32", "--fail-under", 0, patience=900)


def _difference(operator: dict, check: str) -> str | None:
    """The outcome of the first sample that does not pass."""
    if operator["status"][check] in ("pass", "na"):
        return None
    outcomes = (sample["r"][check] for sample in operator["samples"])
    return next(f"{status}: {text}" for status, text in outcomes if status not in ("pass", "na"))


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_operators(report: dict, check: str) -> None:
    """Every sample of every operator passes, except for the known failures."""
    assert Path(report["implementation"]["file"]).is_relative_to(ROOT)
    claimed = [operator for operator in report["ops"] if operator["status"][check] != "na"]
    assert len(claimed) > 100
    wrong = []
    for operator in claimed:
        try:
            judge("conformance", f"{check} {operator['op']}", _difference(operator, check))
        except AssertionError as error:
            wrong.append(str(error))
    assert wrong == []


@pytest.mark.slow
def test_known_failures_name_operators(report: dict) -> None:
    assert (
        unused("conformance", [f"{c} {operator['op']}" for operator in report["ops"] for c in CHECKS]) == []
    )
