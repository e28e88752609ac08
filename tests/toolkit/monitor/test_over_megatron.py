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
def test_a_step_with_nan_changes_no_parameter_and_is_named(toy, words, rank) -> None:
    """Upstream's own check, which would stop the run, is off."""
    every = ("health.skip_norm=100", "monitor.weights=true", "monitor.parameters=[.]", "recovery.restarts=0")
    run = toy.run(*words, *every, fault={"place": "layer", "what": "nan", "rank": rank}, name="nan")
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
