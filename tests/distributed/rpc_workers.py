"""What the jobs of workers that call each other share: who they are, and a layer that each of them can make alike."""

from __future__ import annotations

import os

import torch
from torch import nn

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
NEXT = f"worker{(RANK + 1) % SIZE}"
LAST = f"worker{(RANK + 2) % SIZE}"


def seeded_layer(seed: int) -> nn.Linear:
    """Return a layer of 4 inputs and outputs. A worker runs several calls at the same time, so it has its own generator."""
    layer = nn.Linear(4, 4)
    generator = torch.Generator().manual_seed(seed)
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -0.5, 0.5, generator=generator)
    return layer
