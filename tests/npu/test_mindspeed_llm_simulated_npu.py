"""MindSpeed-LLM's fused flags on the simulated NPU: the losses of the CPU, and CANN's fused operators launched.

Needs what test_mindspeed_llm.py needs. What is counted are launches of aclnn operators in the simulated CANN, below
MindSpore's own plugin: a flag whose operator were replaced by a composite would show none.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from msadapter._host import simulator
from tests.npu.llm_rows import EXPERT, FUSED, GROUPED, SEQ, TENSOR
from tests.npu.llm_trainer import Trainer

BOTH_WAYS = ("FlashAttentionScore", "FlashAttentionScoreGrad", "RmsNorm", "RmsNormGrad")
SWIGLU = ("SwiGlu", "SwiGluGrad")
ROTARY = ("RotaryPositionEmbedding", "RotaryPositionEmbeddingGrad")


@dataclass(frozen=True)
class Row:
    """Flags that both sides have, and those that only the simulated NPU has; the aclnn operators that it must launch."""

    model: str
    processes: int
    layout: str
    fused: str
    launched: tuple[str, ...]
    tolerance: float = 1e-4


ROWS = {
    "qwen25": Row("qwen25", 1, "", FUSED, BOTH_WAYS + SWIGLU + ROTARY),
    "qwen25, tensor": Row("qwen25", 2, TENSOR, FUSED, BOTH_WAYS + SWIGLU + ROTARY),
    # The flags of examples/mcore/qwen3_moe. Its dispatcher, alltoall_seq, does not call the fused permutation.
    "qwen3 moe, experts": Row(
        "qwen3 moe",
        2,
        f"{GROUPED} {EXPERT} {SEQ}",
        f"{FUSED} --moe-permute-fusion",
        (*BOTH_WAYS, *SWIGLU, *ROTARY, "GroupedMatmul"),
        tolerance=2e-3,  # in bfloat16
    ),
    "mixtral, grouped products": Row(
        "mixtral",
        2,
        f"{GROUPED} {EXPERT} --moe-permutation-async-comm --moe-token-dispatcher-type alltoall",
        FUSED,
        (*BOTH_WAYS, "GroupedMatmul"),
        tolerance=2e-3,  # in bfloat16
    ),
    "deepseek3": Row(
        "deepseek3",
        1,
        "--mla-mm-split",
        f"{FUSED} --moe-permutation-async-comm --moe-permute-fusion",
        BOTH_WAYS,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ROWS))
def test_fused_flags_launch_fused_operators(
    name: str, trainer: Trainer, tmp_path: Path, record_property
) -> None:
    row = ROWS[name]
    simulator.build()
    layout = trainer.start(row.model, row.layout, row.processes)  # an NPU would draw other initial weights
    plain = trainer.without(row.processes, row.model, layout)
    settings = {"": "1", "_MEMORY_GB": "4", "_DEVICES": "2", "_COUNTERS": str(tmp_path)}
    fused = trainer.run(
        row.processes,
        row.model,
        f"{layout} {row.fused}",
        GLOG_v="3",
        **{f"MSADAPTER_SIMULATED_NPU{key}": value for key, value in settings.items()},
    )
    assert fused.losses == pytest.approx(plain.losses, rel=row.tolerance)
    launches: Counter = Counter()
    for path in tmp_path.glob("*.json"):
        launches.update(json.loads(path.read_text()))
    record_property("launches", dict(launches))
    found = {name for name in launches if launches[name]}
    missing = [name for name in row.launched if not any(seen.startswith(f"aclnn{name}") for seen in found)]
    assert missing == [], sorted(found)
