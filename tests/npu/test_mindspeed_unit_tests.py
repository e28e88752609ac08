"""The runner of MindSpeed's own unit tests, on a few quick files: without ranks, with one rank, and with two.

MSADAPTER_MEGATRON, MSADAPTER_MINDSPEED as of test_mindspeed_training.py; PYTHONPATH has what they require.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.npu import mindspeed_unit_tests_report as report

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "ops/cann/test_npu_kernel_rotary_position_embedding.py": 6,
    "ops/cann/test_npu_swiglu.py": 2,
    "ops/cann/test_npu_mm_all_reduce_add_rms_norm_.py": 3,
}


@pytest.mark.slow
def test_the_runner_and_its_page(tmp_path, megatron_checkout) -> None:
    mindspeed = os.environ.get("MSADAPTER_MINDSPEED")
    if not mindspeed:
        pytest.skip("needs a MindSpeed checkout (2.3.0_core_r0.12.1): set MSADAPTER_MINDSPEED to its path")
    results, page = tmp_path / "results.json", tmp_path / "page.md"
    run = subprocess.run(
        [sys.executable, "-m", "tests.npu.mindspeed_unit_tests", mindspeed, megatron_checkout]
        + ["--json", results, "--table", page, "--only", *FILES],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    found = json.loads(results.read_text())["as marked"]
    assert set(found) == set(FILES)
    for name, count in FILES.items():
        assert [outcome for outcome, _ in found[name].values()] == ["passed"] * count, found[name]
        assert f"| {name} | {count} | {count} | 0 | 0 |" in page.read_text()


def test_classes_of_failures() -> None:
    part = {
        "a.py": {
            "a.py::x": ["passed", ""],
            "a.py::y[1]": ["failed", "TypeError: odd"],
            "a.py::z": ["skipped", "Skipped: s"],
        }
    }
    page = report.markdown({"as marked": part}, ["a.py", "b.py"])
    assert "| as marked | 1 | 1 | 0 | 0 | 1 | 50.0% |" in page
    assert "Not run:\n\n- b.py\n" in page
    assert "| open | a.py | y | 1 |  | TypeError: odd |" in page
    assert '| a.py | 3 | 1 | 1 | 1 | 1 open, 1 skipped: "s" |' in page
