"""trl's trainers, unmodified: twenty steps have the token ids, the losses and the measures of PyTorch."""

from __future__ import annotations

import pytest

from tests.golden.verdict import compare
from tests.huggingface import trl_cases


@pytest.mark.parametrize("case", trl_cases.CASES)
def test_twenty_steps(case, transformers, tmp_path):
    for package in ("accelerate", "datasets", "trl"):
        pytest.importorskip(package, reason="needs megatron_ms/training/requirements-hf.txt and datasets")
    import torch

    found = trl_cases.run(torch, case, tmp_path)
    assert len(found["losses"]) == trl_cases.STEPS
    for kind, answer in found.items():
        compare("trl", f"{case}: {kind}", answer)
