"""A trainer that runs MindSpeed-LLM's own scripts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.megatron import lm_checkout
from tests.npu.llm_trainer import Trainer


@pytest.fixture(scope="module")
def trainer(tmp_path_factory, megatron_checkout) -> Trainer:
    names = {
        "MSADAPTER_MINDSPEED_LLM": "MindSpeed-LLM checkout (2.3.0 or v26.1.0)",
        "MSADAPTER_MINDSPEED": "MindSpeed checkout (2.3.0_core_r0.12.1 or 26.1.0_core_r0.12.1)",
    }
    for name, what in names.items():
        if not os.environ.get(name):
            pytest.skip(f"needs a {what}: set {name} to its path")
    for package in ("datasets", "pandas", "tokenizers"):
        pytest.importorskip(package, reason=f"MindSpeed-LLM needs {package}")
    folder = tmp_path_factory.mktemp("mindspeed_llm")
    tree = lm_checkout.scratch_copy(megatron_checkout, folder)
    return Trainer(folder, tree, [Path(os.environ[name]) for name in names])
