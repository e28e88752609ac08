"""Megatron-LM's unmodified pretrain_gpt.py on the simulated NPU gives the curves that real PyTorch gave on a CPU.

Needs MSADAPTER_MEGATRON (a checkout of core_v0.12.1) and MSADAPTER_REFERENCE (weights and losses of PyTorch). The first
iterations are run: the simulated NPU is slow. With MSADAPTER_LONG=1 all 20 are.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from msadapter._host import simulator
from tests.megatron import lm_checkout as tools

FRESH = "--finetune --no-load-optim --no-load-rng"


@dataclass(frozen=True)
class Row:
    arguments: str = ""
    processes: int = 1
    curve: str = "gpt_fp32_1proc"
    loss: float = 1e-5  # relative
    grad_norm: float = 1e-5


ROWS = {
    "one": Row(),
    "bfloat16": Row("--bf16", curve="gpt_bf16_1proc", loss=1e-3, grad_norm=1e-2),
    "tensor": Row("--tensor-model-parallel-size 2", 2),
    "pipeline": Row("--pipeline-model-parallel-size 2", 2),
    "data, distributed optimizer, both overlaps": Row(
        "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather", 2
    ),
}


@pytest.fixture(scope="module")
def trees(megatron_checkout: Path, tmp_path_factory) -> dict[bool, Path]:
    """The checkout, and for several ranks (True) a copy with the rules that distributed checkpoints need."""
    folder = tmp_path_factory.mktemp("simulated")
    return {
        False: tools.scratch_copy(megatron_checkout, folder / "own"),
        True: tools.ruled_copy(megatron_checkout, folder / "with rules"),
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ROWS))
def test_curve_of_the_reference(name: str, reference: Path, trees, tmp_path: Path) -> None:
    row = ROWS[name]
    several = row.processes > 1
    if several:
        pytest.importorskip("mpi4py")
    simulator.build()
    count = 20 if os.environ.get("MSADAPTER_LONG") == "1" else 3
    weights = reference / ("init_gpt_dist" if several else "init_gpt")
    load = f"--load {weights} --ckpt-format {'torch_dist' if several else 'torch'} {FRESH}"
    measured = tools.pretrain(
        trees[several],
        f"{load} {row.arguments} --exit-interval {count}".split(),
        tmp_path,
        row.processes,
        MSADAPTER_TRANSFORMER_ENGINE="0",
        MSADAPTER_SIMULATED_NPU="1",
        MSADAPTER_SIMULATED_NPU_MEMORY_GB="4",
        MSADAPTER_SIMULATED_NPU_DEVICES="4",
        GLOG_v="3",
    )
    expected = json.loads((reference / "losses.json").read_text())[row.curve][:count]
    assert [i.number for i in measured] == [e["iteration"] for e in expected]
    assert [i.lm_loss for i in measured] == pytest.approx([e["lm_loss"] for e in expected], rel=row.loss)
    assert [i.grad_norm for i in measured] == pytest.approx(
        [e["grad_norm"] for e in expected], rel=row.grad_norm, abs=tools.PRINTED * 1.001
    )
