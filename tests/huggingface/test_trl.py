"""trl's trainers, unmodified: twenty steps have the token ids, the losses and the measures of PyTorch.

GRPO's loss and advantages also have the values that its formulas give by hand.
"""

from __future__ import annotations

import math

import pytest

from tests.golden.verdict import compare
from tests.huggingface import trl_cases


@pytest.fixture(autouse=True)
def _packages(transformers):
    for package in ("accelerate", "datasets", "trl"):
        pytest.importorskip(package, reason="needs megatron_ms/training/requirements-hf.txt and datasets")


@pytest.mark.parametrize("case", trl_cases.CASES)
def test_twenty_steps(case, tmp_path):
    import torch

    found = trl_cases.run(torch, case, tmp_path)
    assert len(found["losses"]) == trl_cases.STEPS
    for kind, answer in found.items():
        compare("trl", f"{case}: {kind}", answer)


def test_advantages_by_hand(transformers, tmp_path):
    """The rewards 0, 0, 0, 4 have the mean 1 and the unbiased standard deviation 2. Equal rewards teach nothing."""
    import torch

    told = [[0.0, 0.0, 0.0, 4.0] + [5.0] * 4]

    def rule(completions, **_):
        return told.pop() if told else [0.0] * len(completions)

    trainer = trl_cases.grpo_trainer(
        torch, transformers, str(tmp_path), rule, per_device_train_batch_size=8, max_steps=1
    )
    trainer.train()
    wanted = [-1 / 2.0001] * 3 + [3 / 2.0001] + [0.0] * 4
    assert list(trainer._logs["advantages"]) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("dapo", (-2.4 - 1 - 2 + 0.8 + 0.1 * (1.5 - math.log(2))) / 4),  # the mean of all four tokens
        ("grpo", ((-5.4 + 0.1 * 0.5) / 3 + 0.8 + 0.1 * (1 - math.log(2))) / 2),  # of each completion first
    ],
)
def test_loss_by_hand(kind, wanted, transformers, tmp_path):
    """Two completions, of three tokens and of one, whose ratios are 1.5, 0.5 and 1, and 0.5.

    With the advantage 2 the ratio 1.5 counts as 1.2, and 0.5 counts; with -1 the ratio 0.5 counts as 0.8. The reference gives
    the tokens 1, 2 and 1/2 times their probability, and 2 times: k3 is 0, 1 - ln 2, ln 2 - 1/2, and 1 - ln 2. (trl by default
    multiplies k3 by the ratio, which the paper does not.)
    """
    import torch

    def rule(completions, **_):
        return [0.0] * len(completions)

    trainer = trl_cases.grpo_trainer(
        torch, transformers, str(tmp_path), rule, beta=0.1, loss_type=kind, use_bias_correction_kl=False
    )
    new = torch.full((2, 3), -1.0)
    ratios, drift = (
        torch.tensor([[1.5, 0.5, 1.0], [0.5, 9.0, 9.0]]),
        torch.tensor([[1.0, 2.0, 0.5], [2.0, 9.0, 9.0]]),
    )
    trainer._get_per_token_logps_and_entropies = lambda *_, **__: (new, torch.zeros(2, 3), None)
    trainer.current_gradient_accumulation_steps = 1
    inputs = {
        "prompt_ids": torch.ones(2, 1, dtype=torch.long),
        "prompt_mask": torch.ones(2, 1, dtype=torch.long),
        "completion_ids": torch.ones(2, 3, dtype=torch.long),
        "completion_mask": torch.tensor([[1, 1, 1], [1, 0, 0]]),
        "advantages": torch.tensor([2.0, -1.0]),
        "old_per_token_logps": new - ratios.log(),
        "ref_per_token_logps": new + drift.log(),
        "num_items_in_batch": torch.tensor(4.0),
    }
    assert trainer._compute_loss(trainer.model.train(), inputs).item() == pytest.approx(wanted, abs=1e-6)
