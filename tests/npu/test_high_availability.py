"""MindSpeed-LLM's flags for high availability, unmodified, over msadapter's mindio_ttp: injected faults on two CPU ranks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.npu.llm_rows import MODELS
from tests.npu.llm_trainer import ROOT, Trainer

pytestmark = pytest.mark.slow

STEPS, INTERVAL, FAULT = 8, 4, 7  # the fault is in the seventh step, so six are finished
FLAGS = "--enable-high-availability --use-distributed-optimizer --bf16 --ckpt-format torch"
_SKIPPED = ("--no-load-optim", "--no-load-rng", "--no-save-optim", "--no-save-rng")


@dataclass(frozen=True)
class Outcome:
    code: int
    curve: dict[int, tuple[str, str]]  # step -> loss and gradient norm, as printed
    output: str


def train(
    trainer: Trainer,
    folder: Path,
    flags: str = "",
    fault: dict | None = None,
    processes: int = 2,
    launcher: tuple[str, ...] = (),
    interval: int = INTERVAL,
) -> Outcome:
    """Train with a checkpoint in `folder` after each `interval` steps, and an injected fault.

    fault: for tests/megatron/faults/sitecustomize.py.
    """
    common = " ".join(word for word in trainer.common.split() if word not in _SKIPPED)
    common = common.replace("--train-iters 3", f"--train-iters {STEPS}")
    common = common.replace("--save-interval 2000", f"--save-interval {interval}")
    data = ["--data-path", trainer.folder / "text_document"]
    data += ["--tokenizer-name-or-path", trainer.folder / "tokenizer"]
    start = [
        ROOT / "msadapter/distributed/_torchrun.py",
        "--standalone",
        "--nproc-per-node",
        processes,
        *launcher,
    ]
    words = [sys.executable, *start, trainer.script, *f"{common} {MODELS['qwen25']} {FLAGS} {flags}".split()]
    environment = dict(trainer.environment)
    if fault is not None:
        marks = folder / "marks"
        marks.mkdir(exist_ok=True)
        whole = {"tree": str(trainer.megatron), "marks": str(marks), "rank": 1, "iteration": FAULT, **fault}
        injector = str(ROOT / "tests" / "megatron" / "faults")
        environment |= {
            "FAULT": json.dumps(whole),
            "PYTHONPATH": os.pathsep.join([injector, environment["PYTHONPATH"]]),
        }
    places = ["--save", folder / "checkpoints", "--load", folder / "checkpoints"]
    run = subprocess.run(
        [str(word) for word in [*words, *data, *places]],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
    )
    output = run.stdout + run.stderr
    found = re.findall(r"iteration +(\d+)/.*?lm loss: (\S+) .*?grad norm: (\S+)", run.stdout)
    return Outcome(run.returncode, {int(step): (loss, norm) for step, loss, norm in found}, output)


@pytest.fixture(scope="module")
def whole(trainer: Trainer, tmp_path_factory) -> Outcome:
    """The training without a fault, with the flags."""
    found = train(trainer, tmp_path_factory.mktemp("whole"))
    assert found.code == 0 and sorted(found.curve) == list(range(1, STEPS + 1)), found.output[-4000:]
    return found


def test_the_flags_change_no_loss(trainer: Trainer, whole: Outcome, tmp_path: Path) -> None:
    """All five flags at once; without copies the optimizer is divided among the ranks as in Megatron."""
    flags = "--enable-hbmfault-repair --enable-worker-reboot --distributed-optimizer-no-replica --enable-elastic-training"
    found = train(trainer, tmp_path, flags)
    assert found.code == 0 and found.curve == whole.curve, found.output[-4000:]
    assert "it is not possible to start a single rank again here" in found.output
    assert "it is not possible to train on with fewer ranks here" in found.output


@pytest.mark.parametrize("what", ["error", "kill"])
@pytest.mark.parametrize("rank", [0, 1])
def test_a_last_checkpoint_is_written(trainer: Trainer, whole: Outcome, tmp_path: Path, what, rank) -> None:
    """A rank fails or is killed: the other one writes a checkpoint of the last step, and the training resumes from it."""
    first = train(trainer, tmp_path, fault={"place": "all-reduce", "what": what, "rank": rank})
    assert first.code not in (0, None), first.output[-4000:]
    assert f"ranks [{1 - rank}] have written a checkpoint of step {FAULT - 1}" in first.output, first.output[
        -6000:
    ]
    tracker = tmp_path / "checkpoints" / "latest_checkpointed_iteration.txt"
    assert tracker.read_text() == str(FAULT - 1)
    second = train(trainer, tmp_path)
    assert second.code == 0 and sorted(second.curve) == [FAULT, STEPS], second.output[-4000:]
    assert second.curve == {step: whole.curve[step] for step in (FAULT, STEPS)}


def test_torchrun_starts_again_from_the_last_checkpoint(
    trainer: Trainer, whole: Outcome, tmp_path: Path
) -> None:
    fault = {"place": "optimizer", "what": "kill_after"}
    found = train(trainer, tmp_path, fault=fault, launcher=("--max-restarts", "1"))
    assert found.code == 0 and found.curve == whole.curve, found.output[-6000:]


@pytest.mark.parametrize(
    ("what", "flags", "said"),
    [
        ("memory_lost", "--enable-hbmfault-repair", "(RS_UCE): RuntimeError: UCE ERROR"),
        ("link_lost", "", "(RS_HCCL_FAILED): RuntimeError: HCCL OP RETRY FAILED"),
    ],
)
def test_all_ranks_train_on(trainer: Trainer, whole: Outcome, tmp_path: Path, what, flags, said) -> None:
    """A rank that has lost parameters and optimizer gets them from the other one, and no process ends."""
    found = train(trainer, tmp_path, flags, fault={"place": "all-reduce", "what": what})
    assert said in found.output and f"all ranks train on from step {FAULT - 1}" in found.output, found.output[
        -6000:
    ]
    assert found.code == 0 and found.curve == whole.curve, found.output[-6000:]


@pytest.mark.parametrize(
    ("fault", "step"),
    [({}, 6), ({"rank": [0, 1], "load": INTERVAL}, INTERVAL)],
    ids=["last", "named"],
)
def test_an_error_of_precision_goes_back_to_a_checkpoint(
    trainer: Trainer, whole: Outcome, tmp_path: Path, fault: dict, step: int
) -> None:
    """MindSpeed-LLM 26.1.0 registers a handler for these errors. If all ranks report one that names a checkpoint, they load this
    one instead of the last."""
    if trainer.release < "26":
        pytest.skip(f"MindSpeed-LLM {trainer.release} registers no handler for errors of precision")
    injected = {"place": "all-reduce", "what": "wrong_numbers", **fault}
    found = train(trainer, tmp_path, fault=injected, interval=2)
    assert f"all ranks train on from step {step}" in found.output, found.output[-6000:]
    assert found.code == 0 and found.curve == whole.curve, found.output[-6000:]


def test_without_a_copy_the_last_checkpoint_is_loaded(
    trainer: Trainer, whole: Outcome, tmp_path: Path
) -> None:
    """The memory of a rank that has the only copy of its part: all ranks go back to the checkpoint of step 4."""
    flags = "--enable-hbmfault-repair --distributed-optimizer-no-replica"
    found = train(trainer, tmp_path, flags, fault={"place": "all-reduce", "what": "memory_lost"})
    assert f"all ranks train on from step {INTERVAL}" in found.output, found.output[-6000:]
    assert found.code == 0 and found.curve == whole.curve, found.output[-6000:]
