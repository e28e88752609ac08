"""peft, accelerate and transformers' Trainer, unmodified: the losses of PyTorch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.huggingface import training_cases

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "transformers.json").read_text())["training"]


@pytest.mark.parametrize("case", training_cases.CASES)
def test_losses(case, transformers, tmp_path):
    pytest.importorskip("accelerate")
    pytest.importorskip("peft")
    import torch

    assert training_cases.run(torch, case, tmp_path) == pytest.approx(GOLDEN[case], rel=2e-6)
