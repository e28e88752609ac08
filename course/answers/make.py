"""Records answers of real PyTorch for the course: <python with torch 2.13.0> course/answers/make.py"""

from __future__ import annotations

import json
from pathlib import Path

import torch

SEED = 7


def attention() -> dict:
    """The gradients of causal attention for random q, k and v."""
    torch.manual_seed(SEED)
    parts = {name: torch.randn(1, 2, 5, 4, requires_grad=True) for name in "qkv"}
    out = torch.nn.functional.scaled_dot_product_attention(*parts.values(), is_causal=True)
    out.square().sum().backward()
    torch.manual_seed(SEED)
    first = torch.randn(3).tolist()
    return {"seed": SEED, "first": first} | {name: t.grad.flatten().tolist() for name, t in parts.items()}


def clipped_loss() -> dict:
    """PPO's clipped loss of random log-probabilities and advantages."""
    torch.manual_seed(SEED)
    new, old, advantage = torch.randn(6) * 0.3, torch.randn(6) * 0.3, torch.randn(6)
    ratio = torch.exp(new - old)
    loss = -torch.min(ratio * advantage, torch.clamp(ratio, 0.8, 1.2) * advantage)
    told = {"new": new, "old": old, "advantage": advantage, "loss": loss}
    return {"seed": SEED} | {name: t.tolist() for name, t in told.items()}


def main() -> None:
    answers = {
        function.__name__: {"torch": torch.__version__, **function()}
        for function in (attention, clipped_loss)
    }
    path = Path(__file__).with_name("pytorch.json")
    path.write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
