"""Memory and time before a run: known counts, and what the tables say."""

from __future__ import annotations

import pytest

from megatron_ms import commands
from megatron_ms.errors import UserError
from megatron_ms.plan import estimate


def test_counts_of_a_small_model(read) -> None:
    """GPT-2's layer has 12 h^2 + 13 h parameters; with words, positions and the last norm around four of them."""
    h = 64
    whole = 4 * (12 * h * h + 13 * h) + 4096 * h + 64 * h + 2 * h
    assert estimate.shape(read()).parameters() == whole
    (one,) = estimate.stages(read())
    assert (one.parameters, one.weights, one.gradients, one.optimizer) == (
        whole,
        4 * whole,
        4 * whole,
        8 * whole,
    )


def test_stages_and_padding(read) -> None:
    """Vocabularies are padded to multiples of 128 times the tensor size, and the last stage has a copy of tied embeddings."""
    h, words = 64, 4096 + 256
    settings = read("run.processes=4", "parallel.tensor=2", "parallel.pipeline=2", "model.vocab_size=4100")
    first, last = estimate.stages(settings)
    layer = (12 * h * h + 7 * h) // 2 + 6 * h
    assert first.parameters == 2 * layer + words * h // 2 + 64 * h
    assert last.parameters == 2 * layer + words * h // 2 + 2 * h


def test_precision_and_shards(read) -> None:
    settings = read("run.processes=2", "parallel.distributed_optimizer=true", "train.precision=bf16")
    (one,) = estimate.stages(settings)
    assert (one.weights, one.gradients, one.optimizer) == (
        2 * one.parameters,
        4 * one.parameters,
        6 * one.parameters,
    )


def test_experts_are_divided(read) -> None:
    one = estimate.stages(read("run.processes=2", "model.num_experts=4"))[0].parameters
    two = estimate.stages(read("run.processes=2", "model.num_experts=4", "parallel.expert=2"))[0].parameters
    expert = 8 * 64 * 64 + 5 * 64
    assert one - two == 4 * 2 * expert


def test_mixes_hold_the_same_model(read) -> None:
    found = list(estimate.mixes(read("run.processes=4")))
    sizes = {(one.parallel.tensor, one.parallel.pipeline) for one in found}
    assert sizes == {(1, 1), (1, 2), (1, 4), (2, 1), (2, 2), (4, 1)}


def test_a_vocabulary_is_needed(read) -> None:
    with pytest.raises(UserError, match="model.vocab_size: is missing"):
        estimate.stages(read("model.vocab_size=null"))


def test_the_command(here, capsys) -> None:
    words = [
        "recipe=qwen2.5-7b",
        "train.precision=bf16",
        "model.num_layers=28",
        "model.hidden_size=3584",
        "model.vocab_size=152064",
    ]
    (here / "seven.yaml").write_text("train: {iterations: 1}\nrun: {processes: 8}\nparallel: {tensor: 4}\n")
    assert commands.main(["plan", "seven.yaml", "--mixes", *words, "plan.memory=20"]) == 0
    out = capsys.readouterr().out
    assert "seven: 7.616 billion parameters\ntensor 4 x pipeline 1 x data 2 on 8 devices, bf16" in out
    assert "tensor 4 x pipeline 2 x data 1" in out and "(does not fit)" in out
    assert "on a device, which has 20 (plan.memory)" in out
    assert not (here / "runs").exists()
