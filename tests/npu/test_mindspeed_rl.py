"""MindSpeed-RL 2.3.0, unmodified, on two CPU processes: weights go from training to the engine, and a killed worker ends the job.

MSADAPTER_RL_ENV   the env.sh that `bash auto_convert.sh rl` has written, such as build/rl/env.sh
"""

from __future__ import annotations

import json
import math
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
MATHEMATICS = Path(__file__).parent / "jobs" / "rl_mathematics.py"
RESHARDING = Path(__file__).parent / "jobs" / "rl_resharding.py"
TASK = ROOT / "megatron_ms" / "examples" / "rl_addition.py"
SCRIPT = ROOT / "megatron_ms" / "examples" / "train_rl.sh"
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
    subprocess.run(shell(*words), check=True, timeout=600)
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


def test_mathematics_by_hand(shell, tmp_path) -> None:
    """Advantages, losses, the penalty k3 and GAE of MindSpeed-RL have the values of their formulas.

    With the advantage 2 the ratio 1.5 counts as 1.2 (clip higher: 1.28), and 0.5 and 1 count; with -1 the ratio 0.5 counts as 0.8.
    The reference gives the tokens 1, 2 and 1/2 times their probability, and 2 times: k3 is 0, 1 - ln 2, ln 2 - 1/2, and 1 - ln 2.
    """
    subprocess.run(shell("python", MATHEMATICS, tmp_path / "found"), check=True, timeout=600)
    found = json.loads((tmp_path / "found").read_text())

    def holds(name: str, wanted: list) -> None:
        assert found[name] == pytest.approx(wanted, abs=1e-6), name

    # 0, 0, 0, 4 have the mean 1 and the unbiased standard deviation 2. Equal rewards teach nothing.
    wanted = [-1 / 2.000001] * 3 + [3 / 2.000001] + [0.0] * 4
    for row, one in zip(found["group"], wanted, strict=True):
        assert row == pytest.approx([one, one], abs=1e-6)
    low = math.log(2)
    assert found["k3"][0] == pytest.approx([0, 1 - low, low - 0.5], abs=1e-6)
    assert found["k1"][0] == pytest.approx([0, -low, low], abs=1e-6)
    mean, k3 = (-2.4 - 1 - 2 + 0.8) / 4, (1.5 - low) / 4
    drift = (
        -(math.log(1.5) + math.log(0.5) + 0 + math.log(0.5)) / 4
    )  # the estimate of the KL to the old policy
    holds("grpo", [mean + 0.1 * k3 - 0.5 * 0.25, 2 / 4, drift, k3, 0.25])
    holds("ppo", [mean - 0.5 * 0.25, 2 / 4])
    holds("dapo, token mean", [mean, 2 / 4])
    holds("dapo, higher", [(-2.56 - 1 - 2 + 0.8) / 4, 2 / 4])
    assert found["dapo, sequence mean"][0] == pytest.approx((-5.4 / 3 + 0.8) / 2, abs=1e-6)
    # gamma = lambda = 1/2: the errors are 0.25, 0.125 and -0.375 from the last on
    last, middle = 0.25, 0.125 + 0.25 * 0.25
    advantages = [-0.375 + 0.25 * middle, middle, last]
    holds("returns", [advantages[0] + 0.5, middle + 0.25, last + 0.75])
    centre = sum(advantages) / 3
    spread = math.sqrt(sum((one - centre) ** 2 for one in advantages) / 2)
    holds("gae", [(one - centre) / spread for one in advantages])


def _flat(values: object) -> list[float]:
    return [one for part in values for one in _flat(part)] if isinstance(values, list) else [values]


def test_the_course_has_the_numbers_of_these_functions(shell) -> None:
    """What chapter 4 compares with is what MindSpeed-RL's functions say."""
    recorder = ROOT / "course/answers/rl.py"
    code = f"import json, runpy; print(json.dumps(runpy.run_path({str(recorder)!r})['example']()))"
    done = subprocess.run(shell("python", "-c", code), capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    recorded = json.loads((ROOT / "course/answers/mindspeed_rl.json").read_text())["example"]
    assert found.keys() == recorded.keys()
    for name, values in found.items():
        assert _flat(values) == pytest.approx(_flat(recorded[name]), abs=1e-6), name


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
            told = _wait_for(tmp_path / "out.txt", r"\biteration: 2 / 1000", child, 600)
            (cluster,) = set(Path("/tmp").glob("ray-*")) - folders
            assert len(job.members(cluster)) > 5
            victim = int(re.findall(r"IntegratedWorker pid=(\d+)", told)[-1])
            os.kill(victim, signal.SIGKILL)
            killed = time.monotonic()
            assert child.wait(180) == 1
        finally:
            child.terminate()  # a job that still runs ends its cluster
            child.wait(120)
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


def _end_group(child: subprocess.Popen, seconds: float = 120) -> None:
    """End what is left of a program and its children, so that the next one runs without them. A job of Ray ends its cluster."""
    until = time.monotonic() + seconds
    try:
        os.killpg(child.pid, signal.SIGTERM)
        while time.monotonic() < until:
            child.poll()
            os.killpg(child.pid, 0)
            time.sleep(0.5)
    except ProcessLookupError:  # nothing is left
        return
    os.killpg(child.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def example(shell, tmp_path_factory):
    """A function: train_rl.sh with an algorithm for two iterations. Returns its log, and the shares of right sums.

    The model has learned from the teacher for 400 steps, so that some answers of a group are right and others wrong.
    """
    folder = tmp_path_factory.mktemp("example")

    def run(algorithm: str) -> tuple[str, dict]:
        (folder / "result.json").unlink(missing_ok=True)
        words = [
            "bash",
            SCRIPT,
            folder,
            "megatron_training.train_iters=2",
            "megatron_training.save_interval=2",
        ]
        variables = {"RL_ALGORITHM": algorithm, "RL_TEACHER_STEPS": "400"}
        child = subprocess.Popen(shell(*words), env=os.environ | variables, start_new_session=True)
        try:
            assert child.wait(1800) == 0  # five minutes on two cores that do nothing else
        finally:
            _end_group(child)
        return (folder / "log.txt").read_text(), json.loads((folder / "result.json").read_text())

    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "metrics"),
    [
        ("ppo", ("critic/score/mean", "actor/pg_loss", "critic/vf_loss")),
        ("dapo", ("dapo/score/mean", "actor/pg_loss", "train/num_gen_batches")),
    ],
)
def test_other_algorithms_with_ray(algorithm, metrics, example) -> None:
    """train_ppo.py and train_dapo.py, unmodified, train for two iterations, and the numbers that they print are finite."""
    log, shares = example(algorithm)
    for iteration in (1, 2):
        (line,) = re.findall(rf"iteration: {iteration} / 2 \| (.*)", log)
        told = dict(part.strip().split(" : ") for part in line.split("|") if " : " in part)
        assert all(math.isfinite(float(told[name])) for name in metrics), line
    assert 0 < shares["before"]["right"] < 1 and 0 < shares["after"]["right"] < 1


@pytest.mark.slow
def test_dpo_begins_at_log_2(example) -> None:
    """train_dpo.py, unmodified, on two ranks: the policy begins as its reference, so the first loss is ln 2 (in bfloat16)."""
    log, shares = example("dpo")
    losses = [float(value) for value in re.findall(r"iteration +\d+/ +2 \|.*? lm loss: (\S+) \|", log)]
    assert len(losses) == 2 and losses[0] == pytest.approx(math.log(2), rel=2**-8)
    assert 0 < shares["after"]["right"] < 1 and shares["after"] != shares["before"]


def test_an_unknown_algorithm_is_named(tmp_path) -> None:
    variables = {"RL_ALGORITHM": "a2c", "MINDSPEED_RL": str(tmp_path)}
    words = ["bash", str(SCRIPT), str(tmp_path / "made")]
    done = subprocess.run(words, env=os.environ | variables, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "RL_ALGORITHM is a2c, and must be grpo, ppo, dapo or dpo\n"
    assert not (tmp_path / "made").exists()
