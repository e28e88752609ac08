"""The main job at a small size: preprocessing and training, compared with PyTorch where it is available."""

import json
import math
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy
import pytest
import sentencepiece

ROOT = Path(__file__).resolve().parents[2]
TEXT = ROOT / "megatron_ms/data/shakespeare.txt"
PREPROCESS = ROOT / "megatron_ms/data/preprocess.py"
TRAIN = ROOT / "megatron_ms/examples/train_gpt.py"
WITHOUT_CUDA = Path(__file__).with_name("torch_without_cuda.py")
ITERATIONS = 6


def run(command: list, converted: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(converted), "MSADAPTER_DEVICE": "cuda"}
    answer = subprocess.run(
        [str(word) for word in command], env=env, capture_output=True, text=True, timeout=600
    )
    assert answer.returncode == 0, answer.stderr[-3000:]
    return answer.stdout


def adapter(script: Path) -> list:
    return [sys.executable, "-m", "msadapter", script]


def train_arguments(prefix: Path, save: Path, iterations: int = ITERATIONS) -> list:
    # --train-iters fixes the length of the schedule, so a shorter run is a run that is stopped.
    return [
        "--data-prefix",
        prefix,
        "--save",
        save,
        "--train-iters",
        iterations,
        "--lr-warmup-iters",
        2,
        "--log-interval",
        1,
        "--save-interval",
        3,
        "--eval-iters",
        2,
    ]


@pytest.fixture(scope="module")
def prefix(converted: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("data") / "text"
    run([*adapter(PREPROCESS), "--input", TEXT, "--output-prefix", prefix], converted)
    return prefix


@pytest.fixture(scope="module")
def trained(converted: Path, prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    save = tmp_path_factory.mktemp("run") / "gpt"
    return save, run([*adapter(TRAIN), *train_arguments(prefix, save)], converted)


def test_the_index_is_megatrons_format(prefix: Path) -> None:
    index = prefix.with_suffix(".idx").read_bytes()
    assert index[:9] == b"MMIDIDX\x00\x00"
    version, dtype, sequences, documents = struct.unpack("<QBQQ", index[9:34])
    assert (version, dtype, documents) == (1, 8, sequences + 1)  # 8: uint16
    lengths = numpy.frombuffer(index, numpy.int32, sequences, 34)
    tokens = numpy.fromfile(prefix.with_suffix(".bin"), numpy.uint16)
    assert lengths.sum() == tokens.size
    pointers = numpy.frombuffer(index, numpy.int64, sequences, 34 + 4 * sequences)
    assert (pointers == 2 * (numpy.cumsum(lengths) - lengths)).all()


def test_the_tokens_are_the_text(prefix: Path) -> None:
    model = sentencepiece.SentencePieceProcessor(model_file=str(prefix.with_suffix(".model")))
    tokens = numpy.fromfile(prefix.with_suffix(".bin"), numpy.uint16)
    ends = numpy.flatnonzero(tokens == model.piece_to_id("<eod>"))
    assert model.vocab_size() == 2048 and tokens[-1] == model.piece_to_id("<eod>")
    decoded = [
        model.decode(part[part != model.piece_to_id("<eod>")].tolist()) for part in numpy.split(tokens, ends)
    ]
    assert "\n\n".join(part for part in decoded if part) == TEXT.read_text().strip("\n")


def test_it_prints_and_leaves_what_it_says(trained: tuple[Path, str]) -> None:
    save, printed = trained
    lines = [line for line in printed.splitlines() if line.startswith(" iteration ")]
    assert len(lines) == ITERATIONS
    fields = [field.split(":")[0].strip() for field in lines[-1].split("|")[1:]]
    assert fields == [
        "consumed samples",
        "elapsed time per iteration (ms)",
        "learning rate",
        "global batch size",
        "lm loss",
        "loss scale",
        "grad norm",
        "number of skipped iterations",
        "number of nan iterations",
        "",
    ]
    assert (save / "loss.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert not list(save.glob("*.part"))
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(save / "tensorboard"))
    events.Reload()
    losses = [record["loss"] for record in json.loads((save / "losses.json").read_text())["iterations"]]
    assert [event.value for event in events.Scalars("train/loss")] == pytest.approx(losses, rel=1e-6)


def test_the_loss_falls_from_ln_vocabulary(trained: tuple[Path, str]) -> None:
    losses = [record["loss"] for record in json.loads((trained[0] / "losses.json").read_text())["iterations"]]
    assert losses[0] == pytest.approx(math.log(2048), abs=0.05)
    assert losses[-1] < losses[0] - 0.3


def test_a_stopped_run_goes_on_to_the_same_losses(
    trained, converted: Path, prefix: Path, tmp_path: Path
) -> None:
    """A run is killed after the checkpoint of iteration 3 and started again.

    It must give the same numbers.
    """
    save = tmp_path / "gpt"
    command = [*adapter(TRAIN), *train_arguments(prefix, save)]
    env = {**os.environ, "PYTHONPATH": str(converted), "MSADAPTER_DEVICE": "cuda", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [str(word) for word in command], env=env, stdout=subprocess.PIPE, text=True
    ) as process:
        for line in process.stdout:
            if line.startswith(" iteration        4/"):
                process.kill()
                break
    printed = run(command, converted)
    assert "at iteration 3" in printed
    whole = json.loads((trained[0] / "losses.json").read_text())["iterations"]
    resumed = json.loads((save / "losses.json").read_text())["iterations"]
    assert [r["loss"] for r in resumed] == pytest.approx([r["loss"] for r in whole], rel=1e-6)


def test_real_pytorch_trains_to_the_same_losses(
    trained, converted: Path, prefix: Path, torch_python: Path, tmp_path: Path
) -> None:
    run([torch_python, WITHOUT_CUDA, TRAIN, *train_arguments(prefix, tmp_path / "gpt")], converted)
    ours = json.loads((trained[0] / "losses.json").read_text())["iterations"]
    theirs = json.loads((tmp_path / "gpt/losses.json").read_text())["iterations"]
    # Differences in the last bit grow with every step. They show in the norm of the gradients first.
    for name, tolerance in (("loss", 1e-5), ("grad_norm", 3e-5)):
        assert [r[name] for r in ours] == pytest.approx([r[name] for r in theirs], rel=tolerance)


def test_real_pytorch_writes_the_same_data_and_reads_our_checkpoint(
    trained, converted: Path, prefix: Path, torch_python: Path, tmp_path: Path
) -> None:
    run([torch_python, PREPROCESS, "--input", TEXT, "--output-prefix", tmp_path / "text"], converted)
    for ending in (".bin", ".idx", ".model"):
        assert (tmp_path / "text").with_suffix(ending).read_bytes() == prefix.with_suffix(ending).read_bytes()
    program = (
        "import sys, torch; state = torch.load(sys.argv[1], map_location='cpu', weights_only=False); "
        "print(state['iteration'], state['model']['decoder.final_layernorm.weight'].dtype, "
        "torch.isfinite(state['model']['embedding.word_embeddings.weight']).all().item())"
    )
    assert run([torch_python, "-c", program, trained[0] / "checkpoint.pt"], converted).split() == [
        str(ITERATIONS),
        "torch.float32",
        "True",
    ]
