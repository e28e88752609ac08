"""Parallel layouts of Megatron-LM's pretrain_gpt.py, with the arguments of each and the curve that it must give."""

from __future__ import annotations

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
# Batches of 4 until sample 24, then of 8; 90 samples are not a whole number of batches.
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
    daily: bool = True  # in the checks of every change; the flags of the other rows are in these too, in other combinations


ROWS = {
    "tensor": Row(2, TENSOR, daily=False),
    "tensor and sequence": Row(2, f"{TENSOR} --sequence-parallel", daily=False),
    "pipeline": Row(2, PIPELINE, daily=False),
    "interleaved pipeline": Row(2, f"{PIPELINE} --num-layers-per-virtual-pipeline-stage 1"),
    "data, distributed optimizer, both overlaps": Row(2, OVERLAPS, daily=False),
    "tensor and pipeline": Row(4, f"{TENSOR} {PIPELINE}"),
    "tensor and data": Row(4, f"{TENSOR} {OVERLAPS}", daily=False),
    "tensor, recomputed": Row(2, f"{TENSOR} {FULL}", daily=False),
    "tensor, attention recomputed": Row(2, f"{TENSOR} {SELECTIVE}", daily=False),
    "pipeline, attention recomputed": Row(2, f"{PIPELINE} {SELECTIVE}", daily=False),
    "experts, all to all": Row(2, f"{MOE} alltoall", "moe_fp32_ep2"),
    "experts, all gather": Row(2, f"{MOE} allgather", "moe_fp32_ep2", daily=False),
    "engine": Row(1, "", engine=True, daily=False),
    "engine, tensor and sequence": Row(
        2, f"{TENSOR} --sequence-parallel {SELECTIVE}", engine=True, daily=False
    ),
    "engine, context, gathered": Row(2, CONTEXT, engine=True, daily=False),
    "engine, context, heads exchanged": Row(2, f"{CONTEXT} --cp-comm-type a2a", engine=True),
    "engine, tensor, sequence and context": Row(
        4, f"{TENSOR} --sequence-parallel {CONTEXT}", engine=True, daily=False
    ),
    "engine, data, distributed optimizer": Row(2, OVERLAPS, engine=True, daily=False),
    "engine, experts": Row(2, f"{MOE} alltoall", "moe_fp32_ep2", engine=True, daily=False),
    # A large scale overflows and is halved some times first, at the same iterations.
    "float16, tensor": Row(
        2,
        TENSOR,
        "",
        common=f"{HALF} 16777216 --loss-scale-window 4",
        loss=1e-3,
        grad_norm=1e-2,
        daily=False,
    ),
    "float16, pipeline": Row(
        2,
        PIPELINE,
        "",
        common=f"{HALF} 16777216 --loss-scale-window 4",
        loss=1e-3,
        grad_norm=1e-2,
        daily=False,
    ),
    "float16, data": Row(2, OVERLAPS, "", common=f"{HALF} 65536", loss=1e-3, grad_norm=1e-2, daily=False),
    "bfloat16, tensor": Row(2, f"{TENSOR} --bf16", "gpt_bf16_1proc", loss=1e-3, grad_norm=1e-2, daily=False),
    "growing batch, data": Row(2, OVERLAPS, "", schedule=RAMP, daily=False),
    "growing batch, tensor": Row(2, TENSOR, "", schedule=RAMP, daily=False),
}


def train(
    row: Row, arguments: str, processes: int, trees, cache: Path, **variables: str
) -> list[tools.Iteration]:
    """Run a row with its layers and schedule, with these further arguments; return what was printed of each iteration."""
    engine = row.engine
    layers = "--transformer-impl transformer_engine" if engine and row.curve == DENSE else ""
    schedule = row.schedule.split() or tools.TWENTY
    words = f"{arguments} {layers}".split()
    return tools.pretrain(
        trees[engine],
        words,
        cache,
        processes,
        schedule,
        **{"MSADAPTER_TRANSFORMER_ENGINE": str(int(engine)), **variables},
    )


def iterations(entries: list[dict]) -> list[tools.Iteration]:
    """The iterations of a recorded curve."""
    return [tools.Iteration(e["iteration"], e["lm_loss"], e["loss_scale"], e["grad_norm"]) for e in entries]


def assert_equal(row: Row, measured: list[tools.Iteration], expected: list[tools.Iteration]) -> None:
    """Compare two curves by the tolerances of the row."""
    assert expected and [i.number for i in measured] == [e.number for e in expected]
    assert [i.loss_scale for i in measured] == [e.loss_scale for e in expected]
    assert [i.lm_loss for i in measured] == pytest.approx([e.lm_loss for e in expected], rel=row.loss)
    assert [i.grad_norm for i in measured] == pytest.approx(
        [e.grad_norm for e in expected], rel=row.grad_norm, abs=tools.PRINTED * 1.001
    )
