"""MindSpore's own Ascend plugin, unmodified, on the simulated NPU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from msadapter._host import simulator
from tests.ports import free_port

JOBS = Path(__file__).parent / "jobs"
ROOT = Path(__file__).parents[2]


def environment(home, **settings):
    """The environment of a process that imports only MindSpore."""
    settings = {"MEMORY_GB": 4, "DEVICES": 2} | settings
    return (
        os.environ
        | simulator.environment(home)
        | {"GLOG_v": "3", "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        | {f"MSADAPTER_SIMULATED_NPU_{name}": str(value) for name, value in settings.items()}
    )


def run(home, *command, cwd, **settings):
    answer = subprocess.run(
        [sys.executable, *map(str, command)],
        env=environment(home, **settings),
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert answer.returncode == 0, answer.stdout[-1500:] + answer.stderr[-3000:]
    return answer.stdout


def test_operators_gradients_and_streams(home, tmp_path):
    """Tasks are delayed at random and fresh memory is poisoned, so that missing synchronisation shows."""
    seen = run(home, JOBS / "operators.py", cwd=tmp_path, DELAY_US=300, POISON=1)
    assert seen.count("ok ") == 9


@pytest.mark.slow
def test_collectives_of_two_processes(home, tmp_path):
    run(
        home, "-m", "mindspore.parallel.cluster.run", "--worker_num=2", "--local_worker_num=2", f"--master_port={free_port()}",
        f"--log_dir={tmp_path}/log", "--join=True", JOBS / "collectives.py", cwd=tmp_path,
    )  # fmt: skip
    logs = "".join(path.read_text() for path in (tmp_path / "log").glob("worker_*.log"))
    assert "ok rank 0" in logs and "ok rank 1" in logs, logs[-3000:]


@pytest.mark.slow
def test_torch_programs_reach_it_by_an_option(home, tmp_path):
    program = (
        "import torch; x = torch.ones(2, 2, device='npu', requires_grad=True); (x * x).sum().backward();"
        "print(x.grad.tolist(), hex(x.data_ptr())[:5])"
    )
    answer = subprocess.run(
        [sys.executable, "-m", "msadapter", "--simulated-npu", "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT), "GLOG_v": "3"}, cwd=tmp_path, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr[-3000:]
    assert answer.stdout.splitlines()[-1] == "[[2.0, 2.0], [2.0, 2.0]] 0x12c"


def test_doctor_says_that_it_is_simulated(home):
    answer = subprocess.run(
        [sys.executable, ROOT / "msadapter/_host/doctor.py"],
        env=os.environ | {"MSADAPTER_SIMULATED_NPU": "1"}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert "NPU                SIMULATED: no result" in answer.stdout, answer.stdout
