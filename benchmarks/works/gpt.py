"""A GPT and its training step in plain torch, with the sizes of the loss-parity runs."""

from __future__ import annotations

import dataclasses

import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass(frozen=True)
class Config:
    layers: int = 4
    hidden: int = 128
    heads: int = 8
    sequence: int = 128
    vocabulary: int = 4096
    micro_batch: int = 2
    micro_batches: int = 4
    dtype: str = "float32"


CONFIGS = {
    "128 float32": Config(),
    "128 bfloat16": Config(dtype="bfloat16"),
    "512 float32": Config(hidden=512, sequence=512, micro_batches=1),
    "512 bfloat16": Config(hidden=512, sequence=512, micro_batches=1, dtype="bfloat16"),
}


class Block(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.heads = config.heads
        self.before, self.between = nn.LayerNorm(config.hidden), nn.LayerNorm(config.hidden)
        self.qkv, self.out = (
            nn.Linear(config.hidden, 3 * config.hidden),
            nn.Linear(config.hidden, config.hidden),
        )
        self.up, self.down = (
            nn.Linear(config.hidden, 4 * config.hidden),
            nn.Linear(4 * config.hidden, config.hidden),
        )

    def attend(self, x, mask):
        """Attention as separate products and a float32 softmax, like Megatron's local implementation."""
        batch, length, hidden = x.shape
        q, k, v = (
            part.transpose(1, 2) for part in self.qkv(x).view(batch, length, self.heads, -1).chunk(3, dim=-1)
        )
        scores = torch.matmul(q, k.transpose(-1, -2)) / (hidden // self.heads) ** 0.5
        weights = torch.softmax(scores.float().masked_fill(mask, -10000.0), dim=-1).to(v.dtype)
        return self.out(torch.matmul(weights, v).transpose(1, 2).reshape(batch, length, hidden))

    def forward(self, x, mask):
        x = x + self.attend(self.before(x), mask)
        return x + self.down(F.gelu(self.up(self.between(x))))


class GPT(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.words = nn.Embedding(config.vocabulary, config.hidden)
        self.places = nn.Embedding(config.sequence, config.hidden)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.hidden)
        self.register_buffer("mask", torch.ones(config.sequence, config.sequence, dtype=torch.bool).triu(1))

    def forward(self, tokens, labels):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x, self.mask)
        logits = F.linear(self.norm(x), self.words.weight)
        return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())


def flops(config: Config) -> float:
    """The floating point operations of the step's matrix products, forward and backward."""
    tokens = config.micro_batch * config.micro_batches * config.sequence
    per_layer = 12 * config.hidden**2 + 2 * config.sequence * config.hidden
    return 6.0 * tokens * (config.layers * per_layer + config.vocabulary * config.hidden)


def training_step(config: Config, wrap=lambda model: model):
    """Prepares an optimizer step: gradient accumulation, clipping, AdamW. ``wrap`` can make the model parallel."""
    torch.manual_seed(1234)
    model = wrap(GPT(config).to(getattr(torch, config.dtype)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.95), weight_decay=0.01)
    data = torch.randint(
        0, config.vocabulary, (config.micro_batches, config.micro_batch, config.sequence + 1)
    )

    def step():
        optimizer.zero_grad()
        total = 0.0
        for part in data:
            loss = model(part[:, :-1], part[:, 1:]) / config.micro_batches
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return total

    return step
