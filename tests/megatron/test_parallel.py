"""Megatron-LM on several processes gives the curve of one, from PyTorch's own torch_dist checkpoint.

The tree is the checkout with the rules of `patches` applied: they answer what Megatron asks of TransformerEngine.
"""

from __future__ import annotations

import json
from pathlib import Path

import lm_checkout as tools
import pytest

import patches

WEIGHTS = "init_gpt_dist"
TENSOR, PIPELINE = "--tensor-model-parallel-size 2", "--pipeline-model-parallel-size 2"
OVERLAPS = "--use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather"
ROWS = {  # processes, arguments
    "tensor": (2, TENSOR),
    "tensor and sequence": (2, f"{TENSOR} --sequence-parallel"),
    "pipeline": (2, PIPELINE),
    "interleaved pipeline": (2, f"{PIPELINE} --num-layers-per-virtual-pipeline-stage 1"),
    "data, distributed optimizer, both overlaps": (2, OVERLAPS),
    "tensor and pipeline": (4, f"{TENSOR} {PIPELINE}"),
    "tensor, recomputed": (
        2,
        f"{TENSOR} --recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
    ),
}
RELATIVE, PRINTED = 1e-5, 0.001  # Megatron prints gradient norms with three decimals


@pytest.fixture(scope="module")
def tree(megatron_checkout: Path, tmp_path_factory) -> Path:
    """The patched tree with its data set helper."""
    folder = tmp_path_factory.mktemp("parallel")
    upstream, rules = patches.discover("megatron_core")
    patches.apply(upstream, rules, megatron_checkout, folder / "patched")
    return tools.scratch_copy(folder / "patched", folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ROWS))
def test_curve_of_one_process(name: str, reference: Path, tree: Path, tmp_path: Path) -> None:
    pytest.importorskip("mpi4py")
    processes, arguments = ROWS[name]
    load = f"--load {reference / WEIGHTS} --ckpt-format torch_dist --finetune --no-load-optim --no-load-rng"
    expected = json.loads((reference / "losses.json").read_text())["gpt_fp32_1proc"]
    measured = tools.pretrain(tree, [*load.split(), *arguments.split()], tmp_path, processes)
    assert [i.number for i in measured] == [entry["iteration"] for entry in expected]
    assert [i.lm_loss for i in measured] == pytest.approx([e["lm_loss"] for e in expected], rel=RELATIVE)
    assert [i.grad_norm for i in measured] == pytest.approx(
        [e["grad_norm"] for e in expected], rel=RELATIVE, abs=PRINTED * 1.001
    )
