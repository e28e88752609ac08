"""Megatron-LM's unmodified pretrain_gpt.py on the simulated NPU gives the curves that real PyTorch gave on a CPU.

Needs MSADAPTER_MEGATRON (a checkout of core_v0.12.1) and MSADAPTER_REFERENCE (weights and losses of PyTorch). The first
iterations are run: the simulated NPU is slow. With MSADAPTER_LONG=1 all 20 are.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from msadapter._host import simulator
from tests.megatron.layouts import ROWS, Row, assert_equal, iterations, train

ALONE = {"one": Row(1, ""), "bfloat16": Row(1, "--bf16", "gpt_bf16_1proc", loss=1e-3, grad_norm=1e-2)}
PARALLEL = (
    "engine",
    "tensor",
    "pipeline",
    "data, distributed optimizer, both overlaps",
    "experts, all to all",
    "engine, context, gathered",
)
DAILY = ("tensor",)
LONG = os.environ.get("MSADAPTER_LONG") == "1"
SIMULATED = {"SIMULATED_NPU": "1", "SIMULATED_NPU_MEMORY_GB": "4", "SIMULATED_NPU_DEVICES": "4"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in DAILY else pytest.mark.extended) for name in (*ALONE, *PARALLEL)],
)
def test_curve_of_the_reference(name: str, reference: Path, trees, weights, tmp_path: Path) -> None:
    row = ALONE[name] if name in ALONE else ROWS[name]
    if row.processes > 1:
        pytest.importorskip("mpi4py")
    simulator.build()
    count = 20 if LONG else 3
    measured = train(
        row,
        f"{weights[row.curve]} {row.common} {row.arguments} --exit-interval {count}",
        row.processes,
        trees,
        tmp_path,
        GLOG_v="3",
        **{f"MSADAPTER_{name}": value for name, value in SIMULATED.items()},
    )
    assert_equal(
        row, measured, iterations(json.loads((reference / "losses.json").read_text())[row.curve][:count])
    )
