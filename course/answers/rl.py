"""Records a training of MindSpeed-RL for chapter 4: what it has printed, and what its functions say.

bash auto_convert.sh rl --train
source build/rl/env.sh
python course/answers/rl.py build/train-rl
"""

from __future__ import annotations

import argparse
import json
import re
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import torch
import torch_npu  # noqa: F401  # MindSpeed-RL's modules ask for torch.npu
from mindspeed_rl.models.loss.grpo_actor_loss_func import GRPOActorLossFunc
from mindspeed_rl.trainer.utils.compute_utils import compute_group_norm_advantage_return

SEED, GROUP, BETA, CLIP = 7, 4, 0.1, 0.2


def example() -> dict[str, list | float]:
    """The advantages and the loss of two groups of answers with three tokens at most, from MindSpeed-RL's own functions."""
    torch.manual_seed(SEED)
    rewards, lengths = torch.tensor([1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]), torch.randint(1, 4, (8, 1))
    mask = (torch.arange(3) < lengths).float()
    new = -torch.rand(8, 3)
    old, reference = new + 0.4 * torch.randn(8, 3), new + 0.4 * torch.randn(8, 3)
    advantages = compute_group_norm_advantage_return(rewards[:, None], torch.ones(8, 3), lengths, GROUP)[0]
    loss = GRPOActorLossFunc._compute_grpo_policy_loss(
        old_log_prob=old,
        log_prob=new,
        ref_log_prob=reference,
        advantages=advantages,
        entropy=torch.zeros(8, 3),
        eos_mask=mask,
        cliprange=CLIP,
        kl_ctrl=SimpleNamespace(value=BETA),
        kl_penalty="low_var_kl",
        entropy_coeff=0.0,
    )[0]
    kept = {"rewards": rewards, "new": new, "old": old, "reference": reference, "mask": mask, "loss": loss}
    return {name: values.tolist() for name, values in (kept | {"advantages": advantages[:, 0]}).items()}


def training(folder: Path) -> dict[str, list[float] | float]:
    """The mean reward of each iteration, and the share of right sums before and after.

    Raises:
        ValueError: the log has no iterations.
    """
    text = (folder / "log.txt").read_text(encoding="utf-8")
    scores = [float(value) for value in re.findall(r"grpo/score/mean : (\S+)", text)]
    if not scores:
        raise ValueError(f"{folder / 'log.txt'}: train_grpo.py has printed no grpo/score/mean")
    shares = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return {"rewards": scores} | {name: shares[name]["right"] for name in ("before", "after")}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help="the folder of train_rl.sh")
    folder = parser.parse_args().folder
    origin = f"MindSpeed-RL 2.3.0 on two CPU processes, recorded by course/answers/rl.py on {date.today()}"
    found = {
        "origin": origin,
        "group": GROUP,
        "beta": BETA,
        "example": example(),
        "training": training(folder),
    }
    path = Path(__file__).with_name("mindspeed_rl.json")
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
