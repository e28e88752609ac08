"""The memory that `plan` computes is what the ranks of an unmodified Megatron-LM measure."""

from __future__ import annotations

from pathlib import Path

import pytest

from megatron_ms import config
from megatron_ms.plan import estimate
from megatron_ms.training import settings as checks
from tests.megatron import lm_checkout as tools
from tests.megatron.faulty_runs import Toy

pytestmark = pytest.mark.slow

# Large enough that the weights and the activations count more than what a program has besides. The pool of the CPU's memory
# rounds sizes up to a power of two or one and a half times that; with these sizes there is next to nothing to round.
SIZES = [
    "model.num_layers=4", "model.hidden_size=256", "model.num_attention_heads=8", "model.ffn_hidden_size=768",
    "model.max_position_embeddings=256", "dataset.sequence_length=256", "train.micro_batch=2", "train.global_batch=8",
    "train.iterations=2", "save.interval=null", "recovery.memory=null",
]  # fmt: skip
TOLERANCE = 0.12


@pytest.fixture(scope="module")
def toy(megatron_checkout: Path, tmp_path_factory) -> Toy:
    folder = tmp_path_factory.mktemp("plan")
    return Toy(folder / "runs", tools.scratch_copy(megatron_checkout, folder))


@pytest.mark.parametrize(
    "words",
    [
        ("run.processes=1",),
        ("parallel.tensor=2", "model.swiglu=true", "upstream.position_embedding_type=rope", "model.num_query_groups=2"),
        ("parallel.pipeline=2",),
        ("parallel.distributed_optimizer=true", "train.precision=bf16"),
        ("recompute.granularity=full", "recompute.method=uniform", "recompute.layers=1"),
    ],
)  # fmt: skip
def test_the_memory_is_that_which_is_measured(toy, words) -> None:
    run = toy.run(*SIZES, *words, name="plan")
    assert run.code == 0, run.output[-3000:]
    document = config.load(toy.folder / "plan.yaml", [*SIZES, *words])
    expected = max(stage.all for stage in estimate.stages(checks.read(document))) / 1e9
    assert run.records[2]["memory"] == pytest.approx(expected, rel=TOLERANCE), words
