"""Memory and time before a run: known counts, and what the tables say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from megatron_ms import commands
from megatron_ms.errors import UserError
from megatron_ms.plan import estimate, measured


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


def test_a_soft_cap_keeps_its_scores(read) -> None:
    """Its tanh is kept for the backward, a number for each score of each head of each layer."""
    sizes = ["train.micro_batch=2", "dataset.sequence_length=64"]
    cap = [
        *sizes,
        "model.attn_logit_softcapping=50.0",
        "model.spec=[megatron_ms.models.gemma2_spec,layer_spec]",
    ]
    (plain,), (capped,) = estimate.stages(read(*sizes)), estimate.stages(read(*cap))
    form = estimate.shape(read(*sizes))
    assert capped.activations - plain.activations == 4 * form.layers * 2 * form.heads * 64 * 64


def test_norms_behind_attention_and_mlp(read) -> None:
    """Each of the two keeps its input and its output."""
    sizes = ["train.micro_batch=2", "dataset.sequence_length=64"]
    (plain,), (more,) = estimate.stages(read(*sizes)), estimate.stages(read(*sizes, "model.post_norm=true"))
    form = estimate.shape(read(*sizes))
    assert more.activations - plain.activations == 4 * form.layers * 2 * 64 * 4 * form.hidden


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


@pytest.fixture
def ended(here, read):
    """A run of toy.yaml that has ended: its folder, with the times of its steps."""
    folder = here / "runs" / "toy" / "20260101-120000"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_bytes((here / "toy.yaml").read_bytes())

    def write(*seconds: float) -> Path:
        lines = [{"iteration": 2 * at + 2, "steps": 2, "seconds": 2 * one} for at, one in enumerate(seconds)]
        (folder / "monitor.jsonl").write_text("\n".join(map(json.dumps, lines)))
        return folder

    return write


def test_a_run_tells_the_share_of_operations_that_is_reached(read, ended) -> None:
    """The model then gives the run's own time again, and a pipeline's bubble on top of it."""
    machine = estimate.Devices(tflops=0.1, near=5, bandwidth=10).machine()
    expected = estimate.step(read(), replace(machine, busy=0.123))["all"]
    found, seconds = measured.machine_of(
        ended(9 * expected, expected, expected, expected * 1.01, 0.9 * expected), machine
    )
    assert seconds == pytest.approx(expected) and found.busy == pytest.approx(0.123)
    assert replace(found, busy=0.5) == replace(machine, busy=0.5)


def test_a_run_that_is_faster_than_the_figures(read, ended) -> None:
    machine = estimate.Devices(tflops=1e-6).machine()
    with pytest.raises(
        UserError, match=r"a step took 1e-05 s, which is faster than plan.tflops, .*\(compute "
    ):
        measured.machine_of(ended(1e-5, 1e-5, 1e-5), machine)


def test_a_folder_that_has_no_times(here, ended) -> None:
    machine = estimate.Devices().machine()
    with pytest.raises(UserError, match=r"monitor.jsonl: has the times of 2 steps, and the plan needs 3"):
        measured.machine_of(ended(1.0, 1.0), machine)
    with pytest.raises(
        UserError, match=r"config.yaml: there is no such file: --measured needs the folder of a run"
    ):
        measured.machine_of(here / "runs", machine)


def test_the_command_prints_the_share(ended, capsys) -> None:
    folder = ended(0.5, 0.5, 0.5)
    assert commands.main(["plan", "toy.yaml", "--measured", str(folder)]) == 0
    assert "20260101-120000: a step took 0.5 s, so matrix products reach " in (out := capsys.readouterr().out)
    assert "(plan.busy=" in out and "step: 0.5 s (compute 100%" in out


def test_replicas_exchange_what_the_optimizer_needs(read) -> None:
    """Without the distributed optimizer gradients are all-reduced; with it they are scattered, and 16-bit weights gathered."""
    machine = estimate.Devices(
        tflops=1e6, near=1e-3, bandwidth=1e-3
    ).machine()  # nothing is hidden behind products
    ways = (
        ("run.processes=2", "train.precision=bf16"),
        ("run.processes=2", "train.precision=bf16", "parallel.distributed_optimizer=true"),
    )
    alone, shared = (estimate.step(read(*words), machine) for words in ways)
    assert alone["data"] == pytest.approx(shared["data"] * 8 / 6, rel=1e-3)
    assert alone["update"] == pytest.approx(shared["update"] * 2)
