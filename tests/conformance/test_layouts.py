"""PyTorch's operator samples, with inputs in four other memory layouts and NaN between the elements.

The test needs MSADAPTER_CONFORMANCE. What passes for contiguous inputs must pass for each layout.
tests/ops/test_layouts.py tests the same for every operator of the table, without recorded answers.
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
    command = [sys.executable, conformance / "run_conformance.py", "--golden", conformance / "golden"]
    command += ["--dtypes", DTYPES, "--jobs", min(2, os.cpu_count() or 1), "--logdir", folder / "logs"]
    command += ["--out", folder / "report.json"]
    environment = os.environ | {"PYTHONPATH": f"{SHIM}{os.pathsep}{ROOT}", "LAYOUT": layout}
    done = subprocess.run(
        [str(word) for word in command],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    report = json.loads((folder / "report.json").read_text())
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
@pytest.mark.parametrize("layout", ["step", "middle", "offset", "transposed"])
def test_every_sample(conformance: Path, contiguous, tmp_path: Path, layout: str) -> None:
    worse = not_passed(conformance, tmp_path, layout) - contiguous
    assert {case for case in worse if case[0] not in BY_MEMORY} == set()
