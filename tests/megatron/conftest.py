"""The trees and initial weights that Megatron-LM's parallel layouts are run with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.megatron import lm_checkout as tools
from tests.megatron.layouts import DENSE


@pytest.fixture(scope="module")
def trees(megatron_checkout: Path, tmp_path_factory) -> dict[bool, Path]:
    """With transformer_engine (True) the checkout, without it a copy with the rules of patches. Both have compiled helpers."""
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
