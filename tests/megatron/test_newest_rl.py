"""Reinforcement learning with Megatron-LM 0.19.0: train_rl.py answers, scores, and learns, on one process and on two.

Needs what the neighbours of this file need, and the packages of newest_rl.PACKAGES beside them.
"""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import numpy
import pytest

from tests.megatron import lm_checkout as tools
from tests.megatron import newest_rl as rl
from tests.megatron.newest import RELEASE

RECORDER = Path(rl.__file__).with_name("rl_recorder.py")


@pytest.fixture(scope="module")
def tree(newest_megatron: Path, tmp_path_factory) -> Path:
    """A copy of the checkout with the rules of patches."""
    return tools.ruled_copy(newest_megatron, tmp_path_factory.mktemp("newest"), tools.plain_copy)


@pytest.fixture(scope="module")
def toy(python_3_12: Path, tmp_path_factory) -> Path:
    """The folder of the toy task."""
    ask = "import sys; from importlib.util import find_spec; print(*(n for n in sys.argv[1:] if find_spec(n) is None))"
    words = [str(python_3_12), "-c", ask, *rl.PACKAGES.split()]
    absent = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    if absent:
        pytest.skip(f"needs {absent} in the environment of {python_3_12}")
    folder = tmp_path_factory.mktemp("toy") / "task"
    write = "import sys; from pathlib import Path; from tests.megatron import newest_rl; newest_rl.prepare(Path(sys.argv[1]))"
    there = os.environ | {"PYTHONPATH": str(tools.ROOT)}
    subprocess.run([str(python_3_12), "-c", write, str(folder)], env=there, check=True)
    return folder


@contextlib.contextmanager
def _running(tree: Path, toy: Path, python: Path, folder: Path, words: list[str], processes: int = 1):
    """A run of train_rl.py and the file that it prints to. Its servers have fixed ports, so that one runs at a time."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", processes]
    start = launcher if processes > 1 else ["-m", "msadapter"]
    command = [python, *start, RECORDER, folder, "train_rl.py", *words]
    environment = tools.environment(tree, processes, python, **rl.VARIABLES)
    environment |= {"HF_DATASETS_CACHE": f"{toy}/cache", "LANGRL_LOG_DIR": str(folder)}
    printed = folder / "printed"
    lock = Path(tempfile.gettempdir()) / "msadapter-train-rl.lock"
    with open(lock, "w") as alone, open(printed, "w") as output:
        fcntl.flock(alone, fcntl.LOCK_EX)
        job = subprocess.Popen(
            [str(word) for word in command],
            cwd=tree,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield job, printed
        finally:  # after an error its servers go on
            with contextlib.suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
            job.wait()


def _rollouts(folder: Path) -> list[list[list[dict]]]:
    """The answers of each collection, in groups of the same question."""
    files = folder.glob("rollouts_rank0_iteration*.json")
    found = {
        int(file.name.split("iteration")[1].split("_")[0]): json.loads(file.read_text()) for file in files
    }
    return [found[number] for number in sorted(found)]


def _of(part: dict, name: str) -> list[numpy.ndarray]:
    """What the recorder has kept under this name, in its order."""
    return [part[f"{name}_{i}"] for i in range(sum(key.startswith(f"{name}_") for key in part))]


def _difference(part: dict, weights: dict) -> float:
    """The largest difference of a log probability of the policy from the formulas; that of the engine's, too."""
    difference = 0.0
    tokens, generated = part["tokens_0"].astype(int), part["generated_0"].astype(bool)
    expected = [rl.log_probabilities(weights, row) for row in tokens]
    for mine, engine, mask in zip(expected, part["engine_0"], generated, strict=True):
        said = engine[~numpy.isnan(engine)]
        assert len(said)
        difference = max(difference, abs(mine[mask[1:]][: len(said)] - said).max())
    assert difference < rl.NEAR
    if "bins_0" not in part:
        return max(difference, abs(numpy.stack(expected) - part["logprobs_0"]).max())
    return max(difference, _difference_of_bins(part, weights))


def _difference_of_bins(part: dict, weights: dict) -> float:
    """The same for packed sequences. Formulas that let the sequences of a bin see each other give something else."""
    apart = together = 0.0
    bins = zip(part["bins_0"].astype(int), part["lengths_0"].astype(int), part["logprobs_0"], strict=True)
    for row, lengths, policy in bins:
        end, whole = 0, rl.log_probabilities(weights, row[: lengths.sum()])
        for length in lengths[lengths > 0]:
            begin, end = end, end + length
            mine = rl.log_probabilities(weights, row[begin:end])
            apart = max(apart, abs(mine - policy[begin : end - 1]).max())
            together = max(together, abs(mine - whole[begin : end - 1]).max())
    assert together > 10 * rl.NEAR
    return apart


def _check_updates(parts: list[dict], rewards: numpy.ndarray, packed: bool) -> None:
    """The first update sees the policy that has answered, and the second one, of the same answers, a changed policy."""
    advantages = []
    for part in parts:
        ratios, divergence = _of(part, "ratios"), _of(part, "kl")
        half = (
            len(part["bins_0"]) if packed else len(part["tokens_0"])
        )  # the first update has one for each sequence or bin
        assert all((one == 1).all() for one in ratios[:half]) and all(
            (one == 0).all() for one in divergence[:half]
        )
        assert all(numpy.isfinite(one).all() for one in _of(part, "loss"))
        assert max(abs(one - 1).max() for one in ratios[half : 2 * half]) > 0.1
        assert max(one.max() for one in divergence[half : 2 * half]) > 0.01
        policy, reference = part["logprobs_0"], part["logprobs_1"]
        assert (policy == reference).all() and (part["logprobs_2"] != part["logprobs_3"]).any()
        first = _of(part, "advantages")[:half]
        if not packed:
            pairs = zip(_of(part, "loss"), first, strict=False)
            assert all((loss == -advantage).all() for loss, advantage in pairs)
        advantages += [number for one in first for number in one.ravel()]
    expected = rl.advantages(rewards).ravel()
    assert sorted(advantages) == pytest.approx(sorted(expected), rel=2**-8)


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.parametrize("name", list(rl.CASES))
def test_learns(name: str, tree: Path, toy: Path, python_3_12: Path, tmp_path: Path, record_property) -> None:
    pytest.importorskip("mpi4py")
    record_property("release", RELEASE)
    record_property("row", name)
    case = rl.CASES[name]
    updates = case.updates
    words = [*rl.arguments(toy), *case.layout.split(), "--train-iters", str(updates)]
    with _running(tree, toy, python_3_12, tmp_path, words, case.processes) as (job, printed):
        assert job.wait(600) == 0, printed.read_text()[-4000:]
    rewards = []
    for groups in _rollouts(tmp_path):
        given = numpy.array([[one["reward"] for one in group] for group in groups])
        mine = [
            [rl.reward(one["trajectory"][0], one["generation_mask"][0]) for one in group] for group in groups
        ]
        assert (given == mine).all()
        rewards.append(given)
    assert len(rewards) == updates // 2
    parts = [dict(numpy.load(tmp_path / f"rank{rank}.npz")) for rank in range(case.processes)]
    weights = rl.merged(parts if "tensor" in case.layout else parts[:1])
    record_property("largest_difference", difference := max(_difference(part, weights) for part in parts))
    assert difference < rl.NEAR
    _check_updates(parts[:1] if "tensor" in case.layout else parts, rewards[0], "packing" in case.layout)
    if updates >= 8:
        assert rewards[-1].mean() > rewards[0].mean() + 0.2


@pytest.mark.slow
@pytest.mark.extended
@pytest.mark.parametrize("name", list(rl.REFUSALS))
def test_is_refused_by_name(name: str, tree: Path, toy: Path, python_3_12: Path, tmp_path: Path) -> None:
    """The program does not end after its error, because its servers go on, so it is ended when it has said why."""
    case = rl.REFUSALS[name]
    words = [*rl.without_flags(rl.arguments(toy), case.dropped), *case.words.split(), "--train-iters", "2"]
    with _running(tree, toy, python_3_12, tmp_path, words) as (job, printed):
        end = time.monotonic() + 400
        while case.message not in printed.read_text():
            assert job.poll() is None and time.monotonic() < end, printed.read_text()[-4000:]
            time.sleep(1)
