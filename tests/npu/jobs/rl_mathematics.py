"""Asks MindSpeed-RL's functions for values that test_mindspeed_rl.py computes by hand: rl_mathematics.py RESULT."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
import torch_npu  # noqa: F401
from mindspeed_rl.models.loss.dapo_actor_loss_func import DAPOActorLossFunc
from mindspeed_rl.models.loss.grpo_actor_loss_func import GRPOActorLossFunc
from mindspeed_rl.models.loss.ppo_actor_loss_func import PPOActorLossFunc
from mindspeed_rl.trainer.utils.compute_utils import (
    compute_gae_advantage_return,
    compute_group_norm_advantage_return,
)
from mindspeed_rl.utils.compute import compute_kl_penalty

found = {}
lengths, mask = torch.tensor([[2]] * 8), torch.ones(8, 2)
rewards = torch.tensor([[0.0], [0.0], [0.0], [4.0], [5.0], [5.0], [5.0], [5.0]])
found["group"] = compute_group_norm_advantage_return(rewards, mask, lengths, 4)[0].tolist()

# Two completions, of three tokens and of one. The first has the advantage 2, the second -1.
mask = torch.tensor([[1.0, 1.0, 1.0], [1.0, 0.0, 0.0]])
new = torch.full((2, 3), -1.0)
old = new - torch.tensor([[1.5, 0.5, 1.0], [0.5, 9.0, 9.0]]).log()
reference = new + torch.tensor([[1.0, 2.0, 0.5], [2.0, 9.0, 9.0]]).log()
advantages = torch.tensor([[2.0] * 3, [-1.0] * 3])
entropy = torch.full((2, 3), 0.25)
found["k3"] = compute_kl_penalty(new, reference, "low_var_kl").tolist()
found["k1"] = compute_kl_penalty(new, reference, "kl").tolist()
control = SimpleNamespace(value=0.1)
grpo = GRPOActorLossFunc._compute_grpo_policy_loss(
    old, new, reference, advantages, entropy, mask, 0.2, control, "low_var_kl", 0.5
)
found["grpo"] = [one.item() for one in grpo]
for name, low, high, tokens in (
    ("token mean", 0.2, 0.2, True),
    ("sequence mean", 0.2, 0.2, False),
    ("higher", 0.2, 0.28, True),
):
    dapo = DAPOActorLossFunc._compute_dapo_policy_loss(
        old, new, entropy, 0.0, advantages, mask, low, high, tokens
    )
    found[f"dapo, {name}"] = [one.item() for one in dapo[:2]]
ppo = PPOActorLossFunc._compute_ppo_policy_loss(
    old, new, advantages, mask, cliprange=0.2, entropy=entropy, entropy_coeff=0.5
)
found["ppo"] = [one.item() for one in ppo[:2]]

told, values = torch.tensor([[0.0, 0.0, 1.0]]), torch.tensor([[0.5, 0.25, 0.75]])
advantages, returns = compute_gae_advantage_return(told, values, torch.ones(1, 3), 0.5, 0.5)
found["gae"], found["returns"] = advantages[0].tolist(), returns[0].tolist()
Path(sys.argv[1]).write_text(json.dumps(found))
