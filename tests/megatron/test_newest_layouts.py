"""The parallel layouts of core_v0.12.1 with Megatron-LM core_v0.19.0: the curve of one process, or of real PyTorch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.megatron import lm_checkout as tools
from tests.megatron import newest
from tests.megatron.layouts import DENSE, ROWS, assert_equal, iterations, train

WORDS = "--vocab-size 4096"  # its tokenizer counts the end of documents among the given words


@pytest.fixture(scope="module")
def trees(newest_megatron: Path, tmp_path_factory) -> dict[bool, Path]:
    """With transformer_engine (True) the checkout, without it a copy with the rules of patches."""
    folder = tmp_path_factory.mktemp("newest")
    return {
        False: tools.ruled_copy(newest_megatron, folder / "with rules", tools.plain_copy),
        True: tools.plain_copy(newest_megatron, folder / "own"),
    }


@pytest.fixture(scope="module")
def weights(reference: Path, trees, python_3_12: Path, tmp_path_factory) -> dict[str, str]:
    """Arguments that load the initial weights, for each curve."""
    fresh = "--finetune --no-load-optim --no-load-rng"
    folder = tmp_path_factory.mktemp("experts")
    experts = tools.split_experts(trees[False], reference / "init_moe", folder, 2, python_3_12)
    dense = f"--load {reference / 'init_gpt_dist'} --ckpt-format torch_dist {fresh}"
    sparse = f"--load {experts} --ckpt-format torch {fresh}"
    return {"moe_fp32_ep2": sparse, DENSE: dense, "gpt_bf16_1proc": dense, "": dense}


def _as_printed(curve: list[tools.Iteration]) -> list[tools.Iteration]:
    """A curve of core_v0.12.1 as this release prints it: the second loss is the mean of the first two after a start."""
    first, second, *rest = curve
    return [first, replace(second, lm_loss=(first.lm_loss + second.lm_loss) / 2), *rest]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(ROWS))
def test_curve_of_one_process(
    name: str, reference: Path, trees, weights, python_3_12: Path, tmp_path: Path, record_property
) -> None:
    pytest.importorskip("mpi4py")
    row = ROWS[name]
    load = f"{weights[row.curve]} {row.common} {WORDS}"
    ways = {"python": python_3_12, "MSADAPTER_TRITON": "1"}
    if "--fp16" in row.common or "--bf16" in row.arguments:
        # With it this release leaves the model on the CPU, where its optimizer of 16 bits refuses it.
        ways["common"] = tools.without(tools.COMMON, "--use-cpu-initialization")
    if row.curve:
        curve = json.loads((reference / "losses.json").read_text())[row.curve]
        expected = _as_printed(iterations(curve))
    else:
        expected = train(row, load, 1, trees, tmp_path, **ways)
    record_property("release", newest.RELEASE)
    record_property("row", newest.name_of_layout(name))
    got = train(row, f"{load} {row.arguments}", row.processes, trees, tmp_path, **ways)
    assert_equal(row, got, expected)
    pairs = zip(got, expected, strict=True)
    record_property("largest_difference", max(abs(i.lm_loss / e.lm_loss - 1) for i, e in pairs))
