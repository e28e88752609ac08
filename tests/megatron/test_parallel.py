"""Megatron-LM on several processes gives the curve of one.

The weights are those of PyTorch's own checkpoints. Rows with the local layers run a tree with the rules of `patches`,
which answer what Megatron asks of TransformerEngine; the others run upstream's own files with the adapter's
transformer_engine.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.megatron import lm_checkout as tools

DENSE = "gpt_fp32_1proc"
TENSOR, PIPELINE = "--tensor-model-parallel-size 2", "--pipeline-model-parallel-size 2"
CONTEXT = "--context-parallel-size 2"
OVERLAPS = "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"
FULL = "--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
SELECTIVE = "--recompute-granularity selective"
MOE = """--disable-bias-linear --num-experts 4 --moe-router-topk 2 --moe-aux-loss-coeff 0.01 --expert-model-parallel-size 2
--moe-token-dispatcher-type"""
HALF = "--fp16 --min-loss-scale 1 --initial-loss-scale"
# Batches of 4 until sample 24, then of 8; 90 samples are no whole number of batches.
RAMP = "--train-samples 90 --lr-warmup-samples 8 --lr-decay-samples 90 --rampup-batch-size 4 4 24"


@dataclass(frozen=True)
class Row:
    processes: int
    arguments: str
    curve: str = DENSE  # of the reference; "" for one process with the common arguments
    engine: bool = False  # with transformer_engine and upstream's own files
    common: str = ""
    schedule: str = ""
    loss: float = 1e-5  # relative
    grad_norm: float = 1e-5


ROWS = {
    "tensor": Row(2, TENSOR),
    "tensor and sequence": Row(2, f"{TENSOR} --sequence-parallel"),
    "pipeline": Row(2, PIPELINE),
    "interleaved pipeline": Row(2, f"{PIPELINE} --num-layers-per-virtual-pipeline-stage 1"),
    "data, distributed optimizer, both overlaps": Row(2, OVERLAPS),
    "tensor and pipeline": Row(4, f"{TENSOR} {PIPELINE}"),
    "tensor and data": Row(4, f"{TENSOR} {OVERLAPS}"),
    "tensor, recomputed": Row(2, f"{TENSOR} {FULL}"),
    "tensor, attention recomputed": Row(2, f"{TENSOR} {SELECTIVE}"),
    "pipeline, attention recomputed": Row(2, f"{PIPELINE} {SELECTIVE}"),
    "experts, all to all": Row(2, f"{MOE} alltoall", "moe_fp32_ep2"),
    "experts, all gather": Row(2, f"{MOE} allgather", "moe_fp32_ep2"),
    "engine": Row(1, "", engine=True),
    "engine, tensor and sequence": Row(2, f"{TENSOR} --sequence-parallel {SELECTIVE}", engine=True),
    "engine, context, gathered": Row(2, CONTEXT, engine=True),
    "engine, context, heads exchanged": Row(2, f"{CONTEXT} --cp-comm-type a2a", engine=True),
    "engine, tensor, sequence and context": Row(4, f"{TENSOR} --sequence-parallel {CONTEXT}", engine=True),
    "engine, data, distributed optimizer": Row(2, OVERLAPS, engine=True),
    "engine, experts": Row(2, f"{MOE} alltoall", "moe_fp32_ep2", engine=True),
    # A large scale overflows and is halved some times first, at the same iterations.
    "float16, tensor": Row(
        2, TENSOR, "", common=f"{HALF} 16777216 --loss-scale-window 4", loss=1e-3, grad_norm=1e-2
    ),
    "float16, pipeline": Row(
        2, PIPELINE, "", common=f"{HALF} 16777216 --loss-scale-window 4", loss=1e-3, grad_norm=1e-2
    ),
    "float16, data": Row(2, OVERLAPS, "", common=f"{HALF} 65536", loss=1e-3, grad_norm=1e-2),
    "bfloat16, tensor": Row(2, f"{TENSOR} --bf16", "gpt_bf16_1proc", loss=1e-3, grad_norm=1e-2),
    "growing batch, data": Row(2, OVERLAPS, "", schedule=RAMP),
    "growing batch, tensor": Row(2, TENSOR, "", schedule=RAMP),
}


@pytest.fixture(scope="module")
def trees(megatron_checkout: Path, tmp_path_factory) -> dict[bool, Path]:
    """Without transformer_engine the checkout, with it a copy with the rules of patches. Both have compiled helpers."""
    folder = tmp_path_factory.mktemp("parallel")
    return {
        False: tools.ruled_copy(megatron_checkout, folder / "with rules"),
        True: tools.scratch_copy(megatron_checkout, folder / "own"),
    }


@pytest.fixture(scope="module")
def weights(reference: Path, trees, tmp_path_factory) -> dict[str, str]:
    """Arguments that load the initial weights, for each curve."""
    fresh = "--finetune --no-load-optim --no-load-rng"
    experts = tools.split_experts(trees[False], reference / "init_moe", tmp_path_factory.mktemp("experts"), 2)
    dense = f"--load {reference / 'init_gpt_dist'} --ckpt-format torch_dist {fresh}"
    sparse = f"--load {experts} --ckpt-format torch {fresh}"
    return {"moe_fp32_ep2": sparse, DENSE: dense, "gpt_bf16_1proc": dense, "": dense}


def _run(row: Row, arguments: str, processes: int, trees, cache: Path):
    engine = row.engine
    layers = "--transformer-impl transformer_engine" if engine and row.curve == DENSE else ""
    schedule = row.schedule.split() or tools.TWENTY
    words = f"{arguments} {layers}".split()
    return tools.pretrain(
        trees[engine], words, cache, processes, schedule, MSADAPTER_TRANSFORMER_ENGINE=str(int(engine))
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ROWS))
def test_curve_of_one_process(name: str, reference: Path, trees, weights, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    row = ROWS[name]
    load = f"{weights[row.curve]} {row.common}"
    if row.curve:
        entries = json.loads((reference / "losses.json").read_text())[row.curve]
        expected = [
            tools.Iteration(e["iteration"], e["lm_loss"], e["loss_scale"], e["grad_norm"]) for e in entries
        ]
    else:
        expected = _run(row, load, 1, trees, tmp_path)
    measured = _run(row, f"{load} {row.arguments}", row.processes, trees, tmp_path)
    assert expected and [i.number for i in measured] == [e.number for e in expected]
    assert [i.loss_scale for i in measured] == [e.loss_scale for e in expected]
    assert [i.lm_loss for i in measured] == pytest.approx([e.lm_loss for e in expected], rel=row.loss)
    assert [i.grad_norm for i in measured] == pytest.approx(
        [e.grad_norm for e in expected], rel=row.grad_norm, abs=tools.PRINTED * 1.001
    )
