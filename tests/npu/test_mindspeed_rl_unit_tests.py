"""The runner of MindSpeed-RL's own unit tests: two quick files, and the page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.npu import mindspeed_rl_unit_tests as runner

ROOT = Path(__file__).resolve().parents[2]
FILES = {"utils/test_torch_functional.py": 4, "models/loss/test_ppo_loss_func.py": 3}


@pytest.mark.slow
def test_the_runner_and_its_page(tmp_path) -> None:
    env = os.environ.get("MSADAPTER_RL_ENV")
    if not env:
        pytest.skip("MSADAPTER_RL_ENV names the env.sh of `bash auto_convert.sh rl`")
    words = ["--json", tmp_path / "results.json", "--table", tmp_path / "page.md", "--only", *FILES]
    subprocess.run(
        [sys.executable, "-m", "tests.npu.mindspeed_rl_unit_tests", env, *words],
        cwd=ROOT,
        check=True,
        timeout=300,
    )
    found = json.loads((tmp_path / "results.json").read_text())["msadapter"]
    assert {name: len(tests) for name, tests in found.items()} == FILES
    assert {outcome for outcome, _ in found["utils/test_torch_functional.py"].values()} == {"passed"}
    page = (tmp_path / "page.md").read_text()
    assert "| `utils/test_torch_functional.py` | 4 | 0 | 0 | not run |  |" in page


def test_the_page_says_why() -> None:
    ours = {
        "a.py": {"x": ["passed", ""], "y": ["failed", "no folder /data/models here"]},
        "b.py": {"z": ["failed", "odd | thing"]},
    }
    theirs = {
        "a.py": {"x": ["failed", "module 'torch' has no attribute 'npu'"], "y": ["failed", "/data/models"]}
    }
    text = runner.page({"msadapter": ours, "PyTorch": theirs})
    assert "2 files have 3 tests: 1 passed, 2 failed and 0 were skipped." in text
    assert "In 0 of 2 files every test has the same outcome." in text
    reads = "reads a model or a data set of its authors' machines, which is not public"
    assert f"| `a.py` | 1 | 1 | 0 | 0/2/0 | {reads}; PyTorch alone: needs torch.npu |" in text
    assert "| `b.py` | 0 | 1 | 0 | not run | odd \\| thing |" in text


def test_a_file_that_hangs_or_does_not_start(tmp_path) -> None:
    waits = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert runner.run(tmp_path, "t.py", dict(os.environ), waits, 1) == {
        "t.py": ["failed", "did not end in 1 s"]
    }
    breaks = [sys.executable, "-c", "raise SystemExit('broken')"]
    assert runner.run(tmp_path, "t.py", dict(os.environ), breaks, 60) == {
        "t.py": ["failed", "did not start: broken"]
    }


ONE_WAITS = """
import time

def test_first():
    pass

def test_waits():
    time.sleep(60)

def test_last():
    assert False, "on purpose"
"""


def test_a_test_that_hangs_costs_no_other_test(tmp_path) -> None:
    """It is found by name, and the rest of its file is counted."""
    (tmp_path / "conftest.py").write_text("def pytest_configure(config):\n    config.option.verbose = 1\n")
    (tmp_path / "test_one.py").write_text(ONE_WAITS)
    words = [sys.executable, "-m", "pytest", "-c", os.devnull]
    found = runner.run(tmp_path, "test_one.py", dict(os.environ), words, 8)
    assert {name: outcome for name, (outcome, _) in found.items()} == {
        "test_one.test_first": "passed",
        "test_one.test_waits": "failed",
        "test_one.test_last": "failed",
    }
    assert found["test_one.test_waits"][1] == "did not end in 8 s"
    assert "on purpose" in found["test_one.test_last"][1]


def test_the_page_says_why_a_test_never_ends() -> None:
    assert "GBS_train" in runner.why("did not end in 170 s", "tests.x.test_distributed_get_experience")
    assert runner.why("did not end in 170 s", "tests.x.test_other") == "did not end in 170 s"
