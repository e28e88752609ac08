"""PyTorch's operator samples, with inputs in four other memory layouts and NaN between the elements.

The test needs MSADAPTER_CONFORMANCE. What passes for contiguous inputs must pass for each layout.
tests/ops/test_layouts.py tests the same for every operator of the table, without recorded answers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.samples import ROOT, report_of

DTYPES = "float32,float64,complex64,int64,bool"

# The result depends on the memory, or the operator refuses strides. PyTorch fails these samples too.
BY_MEMORY = {
    *("as_strided", "as_strided.partial_views", "as_strided_copy", "resize_"),
    *("view", "view_as", "view_as_complex"),
}


def not_passed(conformance: Path, folder: Path, layout: str) -> set[tuple[str, int, str]]:
    """Return (operator, sample, check) of every check that fails with inputs in the layout ("" is
    contiguous).
    """
    report = report_of(conformance, folder, DTYPES, patience=1500, LAYOUT=layout)
    assert Path(report["implementation"]["file"]).is_relative_to(ROOT)
    assert report["n_samples"] > 5000
    return {
        (entry["op"], sample["i"], check)
        for entry in report["ops"]
        for sample in entry["samples"]
        for check, (status, _) in sample["r"].items()
        if status not in ("pass", "na")
    }


@pytest.fixture(scope="module")
def contiguous(conformance: Path, tmp_path_factory) -> set[tuple[str, int, str]]:
    return not_passed(conformance, tmp_path_factory.mktemp("contiguous"), "")


@pytest.mark.slow
@pytest.mark.parametrize(
    "layout",
    [
        pytest.param("step", marks=pytest.mark.extended),
        pytest.param("middle", marks=pytest.mark.extended),
        pytest.param("offset", marks=pytest.mark.extended),
        "transposed",
    ],
)
def test_every_sample(conformance: Path, contiguous, tmp_path: Path, layout: str) -> None:
    worse = not_passed(conformance, tmp_path, layout) - contiguous
    assert {case for case in worse if case[0] not in BY_MEMORY} == set()
