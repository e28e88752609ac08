"""Counts what a training step issues on the simulated NPU, and prints it as JSON. benchmarks/npu.py runs it.

Of each model, the step after two others is counted. "operators" are calls of PyTorch's operators and backward nodes, which
are the same on a CPU and on an NPU; "launches" are those of aclnn operators in the simulated CANN; "copies" are transfers
between the host and the device. The batch is on the device before the step, and the loss is not read.
"""

from __future__ import annotations

import collections
import json
import sys

import torch
import torch.nn.functional as F
from torch import nn

from msadapter._host import simulator

DEVICE = "npu"


class LanguageModel(nn.Module):
    """Two layers of a decoder over 64 words."""

    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.embedding = nn.Embedding(64, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 64)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], device=ids.device)
        return self.head(self.layers(self.embedding(ids), mask, is_causal=True))


def _language(dropout=0.0):
    ids = torch.arange(4 * 16).view(4, 16) % 64
    return LanguageModel(dropout), ids, ids


def _network():
    layers = [nn.Linear(16, 64), nn.GELU(), nn.LayerNorm(64), nn.Linear(64, 10)]
    return nn.Sequential(*layers), torch.randn(8, 16), torch.arange(8)


def _images():
    layers = [
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(72, 10),
    ]
    return nn.Sequential(*layers), torch.randn(4, 3, 8, 8), torch.arange(4)


MODELS = {
    "two linear layers, GELU, LayerNorm; AdamW": (_network, torch.optim.AdamW),
    "the same; SGD with momentum": (_network, lambda p: torch.optim.SGD(p, 0.1, momentum=0.9)),
    "convolution, BatchNorm, pooling; Adam": (_images, torch.optim.Adam),
    "decoder of two layers; AdamW": (_language, torch.optim.AdamW),
    "the same with dropout": (lambda: _language(0.1), torch.optim.AdamW),
}


def _step(model, x, target, optimizer) -> None:
    optimizer.zero_grad()
    y = model(x)
    F.cross_entropy(y.flatten(0, -2), target.flatten()).backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def _operators(step) -> int:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as seen:
        step()
    return sum(event.count for event in seen.key_averages() if not event.key.startswith("Optimizer."))


def count(make, optimizer_of) -> tuple[int, int, int, int]:
    """Return the operators, launches, copies to the host and copies to the device of one step."""
    torch.manual_seed(0)
    model, x, target = make()
    model, x, target = model.to(DEVICE), x.to(DEVICE), target.to(DEVICE)
    optimizer = optimizer_of(model.parameters())

    def step():
        _step(model, x, target, optimizer)

    step()
    operators = _operators(step)
    torch.npu.synchronize()
    before = collections.Counter(simulator.counters())
    step()
    torch.npu.synchronize()
    done = collections.Counter(simulator.counters())
    done.subtract(before)
    launches = sum(n for name, n in done.items() if name.startswith("aclnn"))
    return operators, launches, done["copies device to host"], done["copies host to device"]


def main() -> int:
    print(json.dumps({name: count(make, optimizer_of) for name, (make, optimizer_of) in MODELS.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
