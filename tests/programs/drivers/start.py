"""What every program does before its own work: torch is imported, and what its first step needs is loaded."""

import torch

layer = torch.nn.Linear(2, 2)
optimizer = torch.optim.Adam(layer.parameters())
layer(torch.ones(1, 2)).sum().backward()
optimizer.step()
