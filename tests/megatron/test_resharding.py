"""Checkpoints of an unmodified Megatron-LM in another layout and format, with the state of the optimizer."""

from __future__ import annotations

from pathlib import Path

import pytest

from megatron_ms import commands
from tests.megatron import lm_checkout as tools
from tests.megatron.faulty_runs import Run, Toy

pytestmark = pytest.mark.slow

FIRST = 4  # steps until the checkpoint
EXACT = ("model.hidden_dropout=0.0", "model.attention_dropout=0.0", "train.decay=constant")
TENSOR, PIPELINE = "parallel.tensor=2", "parallel.pipeline=2"
SHARDS = ("parallel.distributed_optimizer=true", "train.precision=bf16")


@pytest.fixture(scope="module")
def toy(megatron_checkout: Path, tmp_path_factory) -> Toy:
    folder = tmp_path_factory.mktemp("resharding")
    return Toy(folder / "runs", tools.scratch_copy(megatron_checkout, folder))


def trained(toy: Toy, name: str, steps: int, *words: str) -> Run:
    run = toy.run(f"train.iterations={steps}", f"save.interval={steps}", *words, name=name)
    assert run.code == 0, run.output[-3000:]
    return run


def converted(toy: Toy, capsys, name: str, source: Path, *words: str) -> tuple[Path, str]:
    """Converts a checkpoint with KEY=VALUE. Returns the result and what was printed."""
    place = toy.folder / f"{name}-converted"
    keys = ["convert.to=megatron", f"convert.source={source}", f"convert.output={place}"]
    assert commands.main(["convert", str(toy.folder / f"{name}.yaml"), *keys, *words]) == 0
    return place, capsys.readouterr().out


def test_a_training_goes_on_in_another_layout(toy, capsys) -> None:
    """Two tensor parallel ranks, then two stages: the curve is that of a training that stayed as it was."""
    whole = trained(toy, "whole", 2 * FIRST, TENSOR, *EXACT)
    first = trained(toy, "first", FIRST, TENSOR, *EXACT)
    place, said = converted(toy, capsys, "first", first.folder / "checkpoints", "parallel.tensor=1", PIPELINE)
    assert "from: TP 2 x PP 1\n  layout: TP 1 x PP 2\n" in said and "back: bit for bit" in said
    second = trained(
        toy,
        "second",
        2 * FIRST,
        PIPELINE,
        *EXACT,
        f"resume.load={place}",
        "resume.whole=true",
        "resume.schedule=old",
    )
    expected = whole.curve()[FIRST:]
    assert len(second.curve()) == FIRST
    for (loss, norm), (wanted_loss, wanted_norm) in zip(second.curve(), expected, strict=True):
        assert loss == pytest.approx(wanted_loss, rel=1e-6)
        assert norm == pytest.approx(
            wanted_norm, rel=2e-4
        )  # Adam makes steps of the last bits of gradients that are zero


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("shards", SHARDS, (*SHARDS, "save.format=torch_dist")),
        (
            "stages",
            (PIPELINE, "save.format=torch_dist"),
            ("parallel.pipeline=1", TENSOR, "save.format=torch"),
        ),
        ("apart", (TENSOR, "save.format=safetensors"), ("parallel.tensor=1", "save.format=torch")),
    ],
)
def test_formats_and_dropout(toy, capsys, name, before, after) -> None:
    """With dropout the ranks' copies of a weight stay equal only if they have drawn the same numbers: the proof compares them."""
    run = trained(toy, name, FIRST, *before)
    place, said = converted(toy, capsys, name, run.folder / "checkpoints", *after)
    assert "back: bit for bit" in said and (place / "manifest.json").is_file()
    assert (place / f"iter_{FIRST:07}" / "common.pt").is_file() == ("save.format=torch_dist" in after)


def test_what_cannot_be_converted_is_named(toy, capsys) -> None:
    run = trained(toy, "any", FIRST, "save.format=torch_dist")
    words = [f"convert.source={run.folder / 'checkpoints'}", "convert.to=megatron"]
    words += [f"convert.output={toy.folder / 'never'}", "save.format=torch_dist"]
    for key, said in (
        ("run.device=cuda", "has the format torch_dist already, which a training in any layout reads"),
        (
            "train.precision=bf16",
            "train.precision: is bf16, but the checkpoint is that of a training with float32",
        ),
        (
            "parallel.distributed_optimizer=true",
            "parallel.distributed_optimizer: is True, but the checkpoint is that of a training with False",
        ),
        ("save.format=safetensors", "save.format: a conversion writes torch or torch_dist"),
    ):
        assert commands.main(["convert", str(toy.folder / "any.yaml"), *words, key]) == 2
        assert said in capsys.readouterr().err
    assert not list(toy.folder.glob("*never*"))
