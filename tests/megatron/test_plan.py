"""The memory and the times that `plan` computes are those that the ranks of an unmodified Megatron-LM measure."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from megatron_ms import config
from megatron_ms.config.document import Document
from megatron_ms.plan import estimate, measured
from megatron_ms.training import settings as checks
from tests.megatron import lm_checkout as tools
from tests.megatron.faulty_runs import Run, Toy

pytestmark = pytest.mark.slow

# Large enough that the weights and the activations count more than what a program has besides. The pool of the CPU's memory
# rounds sizes up to a power of two or one and a half times that; with these sizes there is next to nothing to round.
SIZES = [
    "model.num_layers=4", "model.hidden_size=256", "model.num_attention_heads=8", "model.ffn_hidden_size=768",
    "model.max_position_embeddings=256", "dataset.sequence_length=256", "train.micro_batch=2", "train.global_batch=8",
    "train.iterations=5", "save.interval=null", "recovery.memory=null",
]  # fmt: skip
TOLERANCE = 0.12
# Times are compared so roughly because other programs run on the same cores, and not the same ones all the time.
SLOWER = 2.5
FIGURES = ["plan.tflops=0.2", "plan.near=5", "plan.bandwidth=10"]  # more than a core reaches
ONE, PIPELINE = ("run.processes=1",), ("parallel.pipeline=2",)
TENSOR = (
    "parallel.tensor=2", "model.swiglu=true", "upstream.position_embedding_type=rope", "model.num_query_groups=2",
)  # fmt: skip
SHARDS = ("parallel.distributed_optimizer=true", "train.precision=bf16")
RECOMPUTED = ("recompute.granularity=full", "recompute.method=uniform", "recompute.layers=1")


@pytest.fixture(scope="module")
def trained(megatron_checkout: Path, tmp_path_factory) -> Callable[..., tuple[Run, Document]]:
    """Trains with KEY=VALUE, each layout once: the run and its configuration."""
    folder = tmp_path_factory.mktemp("plan")
    toy = Toy(folder / "runs", tools.scratch_copy(megatron_checkout, folder))

    @functools.cache
    def train(*words: str) -> tuple[Run, Document]:
        run = toy.run(*SIZES, *words, name="plan")
        assert run.code == 0, run.output[-3000:]
        return run, config.load(run.folder / "config.yaml", FIGURES)

    return train


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(ONE, marks=pytest.mark.extended),
        pytest.param(TENSOR, marks=pytest.mark.extended),
        pytest.param(PIPELINE, marks=pytest.mark.extended),
        pytest.param(SHARDS, marks=pytest.mark.extended),
        RECOMPUTED,
    ],
)
def test_the_memory_is_that_which_is_measured(trained, words) -> None:
    run, document = trained(*words)
    expected = max(stage.all for stage in estimate.stages(checks.read(document))) / 1e9
    assert run.records[2]["memory"] == pytest.approx(expected, rel=TOLERANCE), words


@pytest.mark.extended
@pytest.mark.parametrize("words", [TENSOR, PIPELINE])
def test_the_time_follows_from_that_of_another_layout(trained, words) -> None:
    """Two ranks that share the data tell what two ranks take that share a layer, or are stages of a pipeline."""
    (known, _), (run, document) = trained(*RECOMPUTED), trained(*words)
    figures = document.section("plan", estimate.Devices).machine()
    machine, _ = measured.machine_of(known.folder, figures)
    expected = estimate.step(checks.read(document), machine)["all"]
    found = measured.step_time(run.folder)
    print(f"{words}: expected {expected:.3f} s, measured {found:.3f} s")
    assert expected / SLOWER < found < expected * SLOWER, words
