"""peft, accelerate and transformers' Trainer, unmodified: the losses of PyTorch."""

from __future__ import annotations

import pytest

from tests.golden.verdict import compare
from tests.huggingface import training_cases


@pytest.mark.parametrize("case", training_cases.CASES)
def test_losses(case, transformers, tmp_path):
    pytest.importorskip("accelerate")
    pytest.importorskip("peft")
    import torch

    compare("transformers", f"training {case}", training_cases.run(torch, case, tmp_path))
