"""PyTorch programs on the simulated NPU, through msadapter and MindSpore's own Ascend plugin."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from msadapter._host.native import load

JOBS = Path(__file__).parent / "jobs"
ROOT = Path(__file__).parents[2]
SHIM = ROOT / "msadapter" / "alias" / "shim"

# The least share of PyTorch's operators, in percent, for which every sample passes. The rest are mostly 16-bit numbers that
# are rounded in other places.
LEAST = {"forward": 95, "grad": 92, "inplace": 96, "method": 96}


def environment(**settings):
    """The environment of a process that imports torch on the simulated NPU.

    Tasks start late at random, and new memory is filled with NaN.
    """
    settings = {"MEMORY_GB": 4, "DEVICES": 2, "DELAY_US": 200, "POISON": 1} | settings
    return os.environ | {
        "PYTHONPATH": f"{SHIM}{os.pathsep}{ROOT}",
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "GLOG_v": "3",
        "MSADAPTER_DEVICE": "npu",
        "MSADAPTER_SIMULATED_NPU": "1",
        **{f"MSADAPTER_SIMULATED_NPU_{name}": str(value) for name, value in settings.items()},
    }


def run(*command, cwd, timeout=900, **settings):
    answer = subprocess.run(
        [sys.executable, *map(str, command)],
        env=environment(**settings),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert answer.returncode == 0, answer.stdout[-1500:] + answer.stderr[-3000:]
    return answer.stdout


@pytest.mark.slow
def test_programs(home, tmp_path):
    seen = run(JOBS / "torch_device.py", cwd=tmp_path)
    assert seen.count("ok ") == 11, seen


@pytest.mark.slow
def test_two_ranks(home, tmp_path):
    pytest.importorskip("mpi4py")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", 2]
    seen = run(*launcher, JOBS / "torch_ranks.py", cwd=tmp_path, DELAY_US=50)
    assert "ok rank 0" in seen and "ok rank 1" in seen, seen


@pytest.mark.slow
def test_operator_samples(home, conformance: Path, tmp_path):
    """PyTorch's operator samples in five dtypes, with PyTorch's recorded answers."""
    command = [conformance / "run_conformance.py", "--golden", conformance / "golden", "--device", "npu"]
    command += ["--dtypes", "float32,float16,bfloat16,int64,bool", "--jobs", 1, "--timeout", 180]
    run(*command, "--fail-under", 0, "--out", tmp_path / "report.json", cwd=tmp_path)
    report = json.loads((tmp_path / "report.json").read_text())
    assert Path(report["implementation"]["file"]).is_relative_to(ROOT)
    for check, least in LEAST.items():
        outcomes = [op["status"][check] for op in report["ops"] if op["status"][check] != "na"]
        assert len(outcomes) > 100
        assert 100 * outcomes.count("pass") / len(outcomes) >= least, check


def test_the_page_names_what_is_computed_on_the_host():
    page = (ROOT / "docs/ascend.md").read_text()
    missing = [name for name, _ in load().npu_limits() if f"`{name}`" not in page]
    assert missing == []
