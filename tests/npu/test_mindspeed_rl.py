"""MindSpeed-RL 2.3.0, unmodified, on two CPU processes: weights go from training to the engine, and a killed worker ends the job.

MSADAPTER_RL_ENV   the env.sh that `bash auto_convert.sh rl` has written, such as build/rl/env.sh
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from megatron_ms.rollout import job

ROOT = Path(__file__).resolve().parents[2]
RESHARDING = Path(__file__).parent / "jobs" / "rl_resharding.py"
TASK = ROOT / "megatron_ms" / "examples" / "rl_addition.py"
NEAR, FAR = 1e-4, 0.5  # a log-probability of the same weights, and of others


@pytest.fixture(scope="module")
def shell():
    """A function: the command line of words in the converted environment."""
    path = os.environ.get("MSADAPTER_RL_ENV")
    if not path:
        pytest.skip("MSADAPTER_RL_ENV names the env.sh of `bash auto_convert.sh rl`")

    def line(*words: object) -> list[str]:
        text = shlex.join(map(str, words))
        return ["bash", "-c", f". {shlex.quote(path)} && export OMP_NUM_THREADS=1 && exec {text}"]

    return line


@pytest.fixture(scope="module")
def task(shell, tmp_path_factory):
    """The toy task with a model that has hardly learned, and its data set."""
    folder = tmp_path_factory.mktemp("task")
    subprocess.run(shell("python", TASK, "prepare", folder, "--steps", 3), check=True)
    (folder / "data").mkdir()
    inside = f'cd "$MINDSPEED_RL" && python cli/preprocess_data.py addition_data --config-path {shlex.quote(str(folder))}'
    subprocess.run(shell("bash", "-c", inside), check=True)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("tensor", "pipeline"), [(1, 1), (2, 1), (1, 2)])
def test_resharding(tensor, pipeline, shell, task, tmp_path, record_property) -> None:
    """The engine's log-probabilities are those of the training forward in float32, before and after a change of the weights.

    They are not those of weights that were changed and not moved, so the comparison can fail.
    """
    result = tmp_path / "pairs"
    words = ("torchrun", "--nproc-per-node", 2, RESHARDING, task / "model", tensor, pipeline, result)
    subprocess.run(shell(*words), check=True, timeout=300)
    for rank in range(2):
        pairs = json.loads(Path(f"{result}.{rank}").read_text())
        gaps = []
        for engine, training, _ in pairs:
            assert [len(row) for row in engine] == [len(row) for row in training] == [6] * 8
            gaps.append(
                max(
                    abs(a - b)
                    for one, two in zip(engine, training, strict=True)
                    for a, b in zip(one, two, strict=True)
                )
            )
        record_property(f"rank {rank}", gaps)
        assert gaps[0] < NEAR and gaps[1] < NEAR, gaps
        assert gaps[2] > FAR, gaps
        assert len({tuple(row) for row in pairs[0][2]}) > 4  # the tokens were drawn


def _shared_memory() -> set[str]:
    return set(os.listdir("/dev/shm"))


@pytest.mark.slow
def test_a_killed_worker_ends_the_job(shell, task, tmp_path) -> None:
    """In the middle of GRPO one of two workers is killed: exit code 1, the worker's name, and nothing is left."""
    folders, memory = set(Path("/tmp").glob("ray-*")), _shared_memory()
    words = [
        "python", "-m", "megatron_ms.rollout.job", "--log", tmp_path / "log.txt", "cli/train_grpo.py", "--config-path", task,
        "--config-name", "grpo_addition", "megatron_training.train_iters=1000", "actor_config.load=null",
    ]  # fmt: skip
    command = shell("bash", "-c", 'cd "$MINDSPEED_RL" && exec ' + shlex.join(map(str, words)))
    with open(tmp_path / "out.txt", "w+") as out:
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT)
        try:
            told = _wait_for(tmp_path / "out.txt", r"\biteration: 2 / 1000", child, 240)
            (cluster,) = set(Path("/tmp").glob("ray-*")) - folders
            assert len(job.members(cluster)) > 5
            victim = int(re.findall(r"IntegratedWorker pid=(\d+)", told)[-1])
            os.kill(victim, signal.SIGKILL)
            killed = time.monotonic()
            assert child.wait(90) == 1
        finally:
            child.kill()
            child.wait()
    print(f"the job ended {time.monotonic() - killed:.1f} s after the worker")
    last = (tmp_path / "out.txt").read_text().strip().splitlines()[-1]
    assert last == f"train_grpo.py failed: the worker IntegratedWorker with process id {victim} has died"
    assert job.members(cluster) == []
    assert not cluster.exists()
    assert not {
        name for name in _shared_memory() - memory if "plasma" in name or "ray" in name or "mpich" in name
    }


def _wait_for(file: Path, pattern: str, child: subprocess.Popen, seconds: float) -> str:
    until = time.monotonic() + seconds
    while time.monotonic() < until and child.poll() is None:
        text = file.read_text(errors="replace")
        if re.search(pattern, text):
            return text
        time.sleep(0.5)
    raise AssertionError(f"{pattern!r} was not printed:\n{file.read_text(errors='replace')[-4000:]}")
