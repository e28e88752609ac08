"""Answers to the exercises of chapter 1."""

import torch

from patches.edits import replace

ANSWERS = {
    "1.1": lambda g, self: g * (torch.tanh(self) + self * (1 - torch.tanh(self) ** 2)),
    "1.2": replace("    return False\n", "    return True\n"),
    "1.3": [100.0, 1.0, 10.0],
}
