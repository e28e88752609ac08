"""Writes the checkpoint from which the FSDP2 example goes on: its model after a step of one process.

Without a checkpoint, the example trains layers that nothing has initialised.
"""

import os
import sys

sys.path[0] = "distributed/FSDP2"

import torch  # noqa: E402
from model import ModelArgs, Transformer  # noqa: E402
from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict  # noqa: E402

if os.environ["RANK"] == "0":
    torch.manual_seed(1)
    model = Transformer(ModelArgs(n_layers=10, n_heads=4, vocab_size=1024, max_seq_len=64, dropout_p=0))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    model(torch.randint(0, 1024, (4, 64))).square().mean().backward()
    optimizer.step()
    plain = model.state_dict(), optimizer.state_dict()
    named = get_model_state_dict(model), get_optimizer_state_dict(model, optimizer)
    for kind, (weights, state) in (("dtensor_api", plain), ("dcp_api", named)):
        folder = f"distributed/FSDP2/checkpoints/{kind}/1"
        os.makedirs(folder)
        torch.save(weights, f"{folder}/model_state_dict.pt")
        torch.save(state, f"{folder}/optim_state_dict.pt")
