"""torch.distributed.launcher: how processes of functions start and end, and where their output goes.

What they return, and what errors say, is compared with PyTorch in launcher_cases.py.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from msadapter.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from msadapter.distributed.elastic.multiprocessing.errors import ChildFailedError
from msadapter.distributed.launcher import LaunchConfig, elastic_launch
from tests.distributed.ranks import PATIENCE, environment, left

MARK = "MSADAPTER_TEST_MARK"  # a variable by which `left` finds the processes of a test


def config(tmp_path: Path, **options) -> LaunchConfig:
    options = {
        "rdzv_backend": "c10d",
        "max_restarts": 0,
        "logs_specs": DefaultLogsSpecs(str(tmp_path)),
        **options,
    }
    return LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, **options)


def total(first: float) -> list[float]:
    """The sum over the ranks of `first` plus the rank."""
    import msadapter as torch
    import msadapter.distributed as dist

    dist.init_process_group("gloo")
    value = torch.full((2,), first + dist.get_rank())
    dist.all_reduce(value)
    dist.destroy_process_group()
    return value.tolist()


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_ranks_communicate(tmp_path: Path, method: str) -> None:
    assert elastic_launch(config(tmp_path, start_method=method), total)(3.0) == {0: [7.0, 7.0], 1: [7.0, 7.0]}


def nothing_that_can_be_pickled():
    return lambda: 1


def test_a_result_must_be_picklable(tmp_path: Path) -> None:
    with pytest.raises(ChildFailedError, match="(?s)nothing_that_can_be_pickled FAILED.*pickle"):
        elastic_launch(config(tmp_path, start_method="fork"), nothing_that_can_be_pickled)()


def test_a_thread_can_launch(tmp_path: Path) -> None:
    found = []
    launch = elastic_launch(config(tmp_path, start_method="fork"), os.getenv)
    thread = threading.Thread(target=lambda: found.append(launch("LOCAL_RANK")))
    thread.start()
    thread.join(PATIENCE)
    assert found == [{0: "0", 1: "1"}]


def lines() -> None:
    rank = os.environ["RANK"]
    print(f"line of {rank}\nother of {rank}")
    print(f"error of {rank}", file=sys.stderr)


def test_output_goes_to_files_and_is_shown(tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    specs = DefaultLogsSpecs(str(tmp_path / "logs"), redirects=Std.ALL, tee={1: Std.OUT})
    settings = config(
        tmp_path,
        start_method="fork",
        logs_specs=specs,
        role="train",
        run_id="job",
        log_line_prefix_template="<${role_name} ${rank} ${local_rank} ${other}> ",
        duplicate_stdout_filters=["line", "nothing"],
        duplicate_stderr_filters=["nothing"],
    )
    elastic_launch(settings, lines)()
    shown = capfd.readouterr()
    assert shown.out.splitlines() == [f"<train 1 1 ${{other}}> {word} of 1" for word in ("line", "other")]
    assert "of" not in shown.err
    (attempt,) = (tmp_path / "logs").glob("job_*/attempt_0")
    assert (attempt / "0/stdout.log").read_text() == "line of 0\nother of 0\n"
    assert (attempt / "1/stderr.log").read_text() == "error of 1\n"
    wanted = sorted(f"<train {rank} {rank} ${{other}}> line of {rank}" for rank in (0, 1))
    assert sorted((attempt / "filtered_stdout.log").read_text().splitlines()) == wanted
    assert (attempt / "filtered_stderr.log").read_text() == ""


PROGRAM = """
import subprocess, sys, time
from torch.distributed.elastic.multiprocessing import SignalException
from torch.distributed.launcher import LaunchConfig, elastic_launch

def sleep():
    subprocess.Popen(["sleep", "300"])
    print("started", flush=True)
    time.sleep(300)

config = LaunchConfig(1, 1, 2, rdzv_backend="c10d", start_method="fork", shutdown_timeout=1)
try:
    elastic_launch(config, sleep)()
except SignalException as error:
    sys.exit(int(error.sigval))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_no_process_stays_when_the_launcher_ends(number: signal.Signals) -> None:
    mark = f"{MARK}=functions{os.getpid()}{number}"
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        env=environment(**dict([mark.split("=")])),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert [program.stdout.readline() for _ in range(2)] == ["started\n"] * 2
    program.send_signal(number)
    assert program.wait(PATIENCE) == (number if number == signal.SIGTERM else -number)
    program.stdout.close()
    end = time.monotonic() + PATIENCE
    while left(mark) and time.monotonic() < end:
        time.sleep(0.05)
    assert left(mark) == []


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"rdzv_backend": "etcd"}, "rdzv_backend='etcd'"),
        ({"event_log_handler": "console"}, "event_log_handler='console'"),
        ({"numa_options": 3}, "numa_options=3"),
        ({"virtual_local_rank": True}, "virtual_local_rank=True"),
    ],
)
def test_settings_that_are_not_supported(tmp_path: Path, options: dict, what: str) -> None:
    with pytest.raises(
        NotImplementedError, match=f"torch.distributed.launcher.LaunchConfig: {what} is not .*coverage"
    ):
        elastic_launch(config(tmp_path, **options), os.getpid)()


def test_what_is_launched_is_a_function_or_a_command(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="must be a function or a command, not NoneType"):
        elastic_launch(config(tmp_path), None)()
    with pytest.raises(NotImplementedError, match="health_check_server"):
        elastic_launch(config(tmp_path), os.getpid, health_check_server=1)()


NOTEBOOK = """
from accelerate import Accelerator, notebook_launcher
import torch

def train(scale):
    accelerator = Accelerator(cpu=True)
    layer = torch.nn.Linear(2, 1)
    model = accelerator.prepare(layer)
    accelerator.backward(model(torch.full((3, 2), scale * (accelerator.process_index + 1))).sum())
    print(f"{accelerator.num_processes} {layer.weight.grad.tolist()}\\n", end="", flush=True)

notebook_launcher(train, (2.0,), num_processes=2, use_port="0")
"""


@pytest.mark.skipif(importlib.util.find_spec("accelerate") is None, reason="needs accelerate")
def test_accelerate_launches_from_a_notebook() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NOTEBOOK], env=environment(), capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    # mean over the ranks of 3 rows of 2 and of 4
    assert done.stdout.splitlines()[-2:] == ["2 [[9.0, 9.0]]"] * 2, done.stdout
