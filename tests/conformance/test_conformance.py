"""PyTorch's own operator samples get PyTorch's answers here (float32), but for the known failures.

Needs MSADAPTER_CONFORMANCE: the folder of run_conformance.py and its golden answers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.verdict import judge, unused

ROOT = Path(__file__).resolve().parents[2]
SHIM = ROOT / "msadapter" / "alias" / "shim"

CHECKS = ("forward", "grad", "inplace", "method")


@pytest.fixture(scope="module")
def report(conformance: Path, tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("conformance")
    command = [sys.executable, conformance / "run_conformance.py", "--golden", conformance / "golden"]
    command += ["--dtypes", "float32", "--jobs", min(2, os.cpu_count() or 1), "--logdir", folder / "logs"]
    command += ["--fail-under", 0, "--out", folder / "report.json"]
    environment = os.environ | {"PYTHONPATH": f"{SHIM}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [str(word) for word in command],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return json.loads((folder / "report.json").read_text())


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
