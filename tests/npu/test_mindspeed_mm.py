"""MindSpeed-MM's own pretrain_vlm.py and its converter, unmodified: LoRA of a toy Qwen2.5-VL in float32, on one and two processes.

MSADAPTER_MM_ENV   the env.sh that `bash auto_convert.sh mm` has written, such as build/mm/env.sh
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "megatron_ms/examples/finetune_qwen25vl.sh"
REFERENCE = Path(__file__).parent / "data/vlm_first_loss.json"  # by jobs/vlm_reference.py, with real PyTorch
NEAR = 2e-5  # the log has seven digits of a loss of 13
STEPS = ("--train-iters", "6", "--save-interval", "3")


def _run(*words: object, **variables: str) -> str:
    """Runs a command in the converted environment and returns its output."""
    path = os.environ.get("MSADAPTER_MM_ENV")
    if not path:
        pytest.skip("MSADAPTER_MM_ENV names the env.sh of `bash auto_convert.sh mm`")
    line = f". {shlex.quote(path)} && export OMP_NUM_THREADS=1 && exec {shlex.join(map(str, words))}"
    done = subprocess.run(
        ["bash", "-c", line], env=os.environ | variables, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def _losses(folder: Path, *words: str, **variables: str) -> dict[int, float]:
    """The loss of each iteration of a training in this folder."""
    text = _run("bash", SCRIPT, folder, *STEPS, *words, **variables)
    return {
        int(step): float(loss) for step, loss in re.findall(r"iteration +(\d+)/.*\| loss: (\S+) \|", text)
    }


def _copy(task: Path, place: Path) -> Path:
    """The same model, pictures and converted weights in another folder, without what a training has written."""
    place.mkdir()
    for name in ("model", "images", "start-tensor-1"):
        shutil.copytree(task / name, place / name)
    for name in ("questions.json", "model.json", ".prepared"):
        shutil.copy(task / name, place)
    (place / "data.json").write_text((task / "data.json").read_text().replace(str(task), str(place)))
    return place


@pytest.fixture(scope="module")
def task(tmp_path_factory) -> tuple[Path, dict[int, float]]:
    """A folder, and the losses of a training there on one process."""
    folder = tmp_path_factory.mktemp("vision") / "task"
    return folder, _losses(folder)


@pytest.mark.slow
def test_the_first_loss_is_that_of_pytorch(task, record_property) -> None:
    folder, losses = task
    known = json.loads(REFERENCE.read_text())
    parts = sorted((folder / "model").glob("*.safetensors"))
    model = hashlib.sha256(b"".join(part.read_bytes() for part in parts)).hexdigest()
    assert model == known["model"], (
        "the toy is another one: record its loss with tests/npu/jobs/vlm_reference.py"
    )
    record_property("difference", abs(losses[1] - known["loss"]))
    assert abs(losses[1] - known["loss"]) < 1e-4, (losses, known)
    assert list(losses) == [1, 2, 3, 4, 5, 6] and losses[6] < losses[1] - 0.3, losses


@pytest.mark.slow
def test_two_processes_that_divide_the_data(task, tmp_path) -> None:
    found = _losses(_copy(task[0], tmp_path / "data"), PROCESSES="2")
    assert found.keys() == task[1].keys()
    assert max(abs(found[step] - loss) for step, loss in task[1].items()) <= NEAR, (found, task[1])


@pytest.mark.slow
def test_two_processes_that_divide_the_layers(task, tmp_path) -> None:
    """Each process draws its own part of LoRA's first matrices, so only the losses before their first change are the same."""
    found = _losses(_copy(task[0], tmp_path / "layers"), PROCESSES="2", PARALLEL="tensor")
    assert max(abs(found[step] - task[1][step]) for step in (1, 2)) <= NEAR, (found, task[1])
    assert found[6] < found[1] - 0.3, found


@pytest.mark.slow
def test_a_training_goes_on_from_lora_alone(task, tmp_path) -> None:
    """The checkpoint has only LoRA's weights. The others come from the converted model."""
    place = _copy(task[0], tmp_path / "again")
    shutil.copytree(task[0] / "lora", place / "lora")
    (place / "lora/latest_checkpointed_iteration.txt").write_text("3")
    assert _losses(place) == {step: loss for step, loss in task[1].items() if step > 3}


@pytest.mark.slow
@pytest.mark.parametrize("tensor", [1, 2])
def test_weights_come_back_bit_for_bit(task, tmp_path, tensor) -> None:
    from safetensors.numpy import load_file

    layers = [f"--cfg.parallel_config.{part}_pp_layers" for part in ("llm", "vit")]
    model = ["--cfg.hf_config.hf_dir", task[0] / "model", "--cfg.parallel_config.tp_size", tensor]
    there = [word for name in layers for word in (name, "[[2]]")]
    back = [word for name in layers for word in (name, "[2]")]
    program = ["python", "-m", "checkpoint.convert_cli", "Qwen2_5_VLConverter"]
    _run(*program, "hf_to_mm", "--cfg.mm_dir", tmp_path / "mm", *model, *there)
    _run(
        *program,
        "mm_to_hf",
        "--cfg.mm_dir",
        tmp_path / "mm",
        "--cfg.save_hf_dir",
        tmp_path / "hf",
        *model,
        *back,
    )
    want, found = (
        {name: array for file in place.glob("*.safetensors") for name, array in load_file(file).items()}
        for place in (task[0] / "model", tmp_path / "hf")
    )
    assert found.keys() == want.keys()
    assert all(found[name].tobytes() == array.tobytes() for name, array in want.items())
