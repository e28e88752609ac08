"""Chapter 5 measures a training with this: how many bytes the model, its gradients, the optimizer and the activations take."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from lesson import corpus
from model import Llama, Shape, ids_of
from torch.nn import functional as F

DEVICE = "cuda"  # without an NPU, this is the host
FLOAT = 4  # bytes
DATA = torch.tensor(ids_of(corpus())[:100_000], device=DEVICE)


@dataclass(frozen=True)
class Job:
    """A training: the shape of the model, and the rows and bytes of a micro-batch."""

    shape: Shape = field(default_factory=Shape)
    batch: int = 16
    sequence: int = 128


def batch(job: Job, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Random rows of the text and the bytes that follow each, both of shape (job.batch, job.sequence)."""
    first = torch.randint(len(DATA) - job.sequence, (job.batch,), generator=generator)
    rows = torch.stack([DATA[i : i + job.sequence + 1] for i in first.tolist()])
    return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()


def measure(job: Job, steps: int = 3, weights: Mapping[str, torch.Tensor] | None = None) -> dict[str, float]:
    """Trains a few steps. weights are what the model begins with; without them it begins with random ones.

    Returns:
        The bytes of "parameters", "gradients", "optimizer" and "activations", the "peak" of the last step in bytes, its
        "seconds" and its "loss".
    """
    gc.collect()
    torch.manual_seed(0)
    generator, found = torch.Generator().manual_seed(0), {}
    start = torch.cuda.memory_allocated()
    model = Llama(job.shape).to(DEVICE)
    if weights:
        model.load_state_dict(weights)
    found["parameters"] = torch.cuda.memory_allocated() - start
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for step in range(steps):
        ids, labels = batch(job, generator)
        torch.cuda.reset_peak_memory_stats()
        began, before = time.perf_counter(), torch.cuda.memory_allocated()
        loss = F.cross_entropy(model(ids).flatten(0, 1), labels.flatten())
        found["activations"] = torch.cuda.memory_allocated() - before
        loss.backward()
        found["loss"] = loss.item()
        del loss
        now = torch.cuda.memory_allocated()
        if step == 0:
            found["gradients"] = now - before
        optimizer.step()
        if step == 0:
            found["optimizer"] = torch.cuda.memory_allocated() - now
        optimizer.zero_grad()
        found["peak"] = torch.cuda.max_memory_allocated() - start
        found["seconds"] = time.perf_counter() - began
        del ids, labels
    return found
