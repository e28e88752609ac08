"""What the observer of a rank does in real steps of an unmodified Megatron-LM, with faults that are injected into them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.megatron import lm_checkout as tools
from tests.megatron.faulty_runs import ITERATIONS, Run, Toy

pytestmark = pytest.mark.slow
LAYER = "decoder.layers.0.self_attention.linear_qkv"
FIRST = "the first tensor with NaN or infinity is the"


@pytest.fixture(scope="module")
def toy(megatron_checkout: Path, tmp_path_factory) -> Toy:
    folder = tmp_path_factory.mktemp("over")
    return Toy(folder / "runs", tools.scratch_copy(megatron_checkout, folder))


def unchanged(run: Run, iteration: int) -> bool:
    """Whether no weight of any rank is another than before the step."""
    before, after = run.records[iteration - 1], run.records[iteration]
    return all(
        one["weight"] == other["weight"] and one["weight"]
        for one, other in zip(before["ranks"], after["ranks"], strict=True)
    )


@pytest.mark.parametrize(
    ("words", "rank"),
    [
        ((), 1),
        (("parallel.distributed_optimizer=true", "train.precision=bf16"), 1),
        (("parallel.pipeline=2",), 0),
        (("train.global_batch=8",), 0),  # the NaN is in the first of two micro batches
    ],
)
def test_a_step_with_nan_changes_no_parameter_and_is_named(toy, tmp_path, words, rank) -> None:
    """Upstream's own check, which would stop the run, is off."""
    every = ("health.skip_norm=100", "monitor.weights=true", "monitor.parameters=[.]", "recovery.restarts=0")
    run = toy.run(*words, *every, fault={"place": "layer", "what": "nan", "rank": rank}, name=tmp_path.name)
    assert run.code == 0 and len(run.records) == ITERATIONS, run.output[-3000:]
    (text,) = run.told("skip")
    assert text.startswith("iteration 7 changes no parameter: gradient norm nan is over 100; ")
    assert text.endswith(f"; rank {rank}: {FIRST} output of {LAYER}")
    assert unchanged(run, 7) and not unchanged(run, 8) and run.records[ITERATIONS]["skipped"] == 1


def test_with_loss_scaling_nan_is_named_and_upstream_skips_the_step(toy) -> None:
    words = ("train.precision=fp16", "upstream.initial_loss_scale=1024", "recovery.restarts=0")
    every = ("monitor.weights=true", "monitor.parameters=[.]")
    run = toy.run(*words, *every, fault={"place": "layer", "what": "nan"}, name="scaled")
    assert run.code == 0 and len(run.records) == ITERATIONS, run.output[-3000:]
    assert run.told("nan") == [f"rank 1, iteration 7: {FIRST} output of {LAYER}"]
    assert unchanged(run, 7) and not unchanged(run, 8)


@pytest.mark.parametrize("words", [(), ("parallel.distributed_optimizer=true",), ("parallel.pipeline=2",)])
def test_the_embedding_norm_is_the_norm_of_the_whole_gradient(toy, words) -> None:
    every = ("monitor.parameters=[embedding]", "health.spike=1000", "train.iterations=2")
    run = toy.run(*words, *every, name="embedding")
    assert run.code == 0, run.output[-3000:]
    for record in run.records.values():
        ranks = [own["norm"] for own in record["ranks"] if "norm" in own]
        own = [norm for name, norm in ranks[0].items() if "embedding" in name]
        if "parallel.distributed_optimizer=true" in words:  # each rank has a part
            own += ranks[1].values()
        assert len(own) >= 2 and record["embedding norm"] == pytest.approx(
            sum(norm**2 for norm in own) ** 0.5
        )


def test_spikes_between_records_are_seen_and_a_later_attempt_counts_on(toy) -> None:
    """Ten steps a record, a spike in step 6. The second command goes on from checkpoint 8, because 12 has lost a file."""
    words = (
        "monitor.interval=10",
        "health.skip_norm=100",
        "health.spike=3",
        "health.window=2",
        "train.iterations=20",
    )
    first = toy.run(*words, fault={"place": "all-reduce", "what": "large", "iteration": 6}, name="counted")
    assert first.code == 0 and sorted(first.records) == [10, 20], first.output[-3000:]
    assert len(first.told("spike")) == 2 and all("at iteration 6" in text for text in first.told("spike"))
    assert first.records[20]["skipped"] == 1
    for number in (12, 16, 20):
        next((first.folder / "checkpoints" / f"iter_{number:07}").rglob("*.pt")).unlink()
    second = toy.run(*words, "--resume", name="counted")
    assert second.code == 0 and second.told("resume") == ["goes on from checkpoint 8"], second.output[-3000:]
    assert second.records[20]["skipped"] == 1 and len(second.told("spike")) == 2
    assert second.records[20]["lost seconds"] > 0
