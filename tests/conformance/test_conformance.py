"""The share of PyTorch's own operator samples that get PyTorch's answers here (float32).

Needs MSADAPTER_CONFORMANCE: the folder of run_conformance.py and its golden answers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIM = ROOT / "msadapter" / "alias" / "shim"

# Per cent of operators of which every sample passes. Raised whenever the measured rate has risen for good.
FLOORS = {"forward": 99.0, "grad": 97.5, "inplace": 99.5, "method": 99.0}


@pytest.fixture(scope="module")
def report(conformance: Path, tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("conformance")
    command = [sys.executable, conformance / "run_conformance.py", "--golden", conformance / "golden"]
    command += ["--dtypes", "float32", "--jobs", min(2, os.cpu_count() or 1), "--logdir", folder / "logs"]
    command += ["--fail-under", min(FLOORS.values()), "--out", folder / "report.json"]
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


@pytest.mark.slow
@pytest.mark.parametrize("check", list(FLOORS))
def test_rate(report: dict, check: str) -> None:
    assert Path(report["implementation"]["file"]).is_relative_to(ROOT)
    counts = {status: n for status, n in report["totals"]["op"][check].items() if status != "na"}
    total = sum(counts.values())
    assert total > 100, counts
    rate = 100 * counts.get("pass", 0) / total
    assert rate >= FLOORS[check], (
        f"{check}: {rate:.1f} % of {total} operators, the floor is {FLOORS[check]} %: {counts}"
    )
