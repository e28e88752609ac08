"""mamba-minimal at toy size: gradients of one step in three seeds."""

import torch
from _tell import step
from model import Mamba, ModelArgs

for seed in range(3):
    torch.manual_seed(seed)
    model = Mamba(ModelArgs(d_model=32, n_layer=2, vocab_size=64))
    logits = model(torch.randint(0, 64, (2, 20)))
    step(f"seed {seed}", model, logits)
