"""The schedules of torch.distributed.pipelining, with the Transformer of the FSDP2 example, which its folder has.

The model is cut into stages by hand, and at a module that is named. Each schedule takes three steps of SGD.
"""

import os
import sys

sys.path[0] = "distributed/FSDP2"

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from model import ModelArgs, Transformer  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.pipelining import (  # noqa: E402
    PipelineStage,
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleLoopedBFS,
    SplitPoint,
    pipeline,
)

RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LAYERS, PARTS, WORDS, LENGTH, CPU = 4, 4, 64, 16, torch.device("cpu")  # PARTS: of a batch


class Part(nn.Module):
    """Some layers of the model; the first part has its embeddings too, and the last one its end."""

    def __init__(self, model: Transformer, number: int, count: int):
        super().__init__()
        each = LAYERS // count
        self.layers = nn.ModuleList(model.layers[number * each : (number + 1) * each])
        first, last = number == 0, number == count - 1
        self.words, self.places = (model.tok_embeddings, model.pos_embeddings) if first else (None, None)
        self.norm, self.output = (model.norm, model.output) if last else (None, None)

    def forward(self, x):
        if self.words is not None:
            x = self.words(x) + self.places(torch.arange(x.shape[1]))
        for layer in self.layers:
            x = layer(x)
        return x if self.norm is None else self.output(self.norm(x))


def whole() -> Transformer:
    torch.manual_seed(2)
    return Transformer(
        ModelArgs(n_layers=LAYERS, n_heads=4, vocab_size=WORDS, max_seq_len=LENGTH, dropout_p=0)
    )


def by_hand(numbers, count: int) -> list:
    model = whole()
    return [PipelineStage(Part(model, number, count), number, count, CPU) for number in numbers]


def at_a_module() -> PipelineStage:
    tokens = torch.zeros(8 // PARTS, LENGTH, dtype=torch.long)
    where = {f"layers.{LAYERS // RANKS}": SplitPoint.BEGINNING}
    return pipeline(whole(), mb_args=(tokens,), split_spec=where).build_stage(RANK, CPU)


def loss_of(output, target):
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())


def train(name: str, schedule, stages: list) -> None:
    parameters = [p for stage in stages for p in stage.submod.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for step in range(3):
        tokens = (torch.arange(8 * LENGTH).reshape(8, LENGTH) * 7 + step) % WORDS
        losses: list = []
        inputs = (tokens,) if any(stage.is_first for stage in stages) else ()
        ends = any(stage.is_last for stage in stages)
        schedule.step(*inputs, **({"target": (tokens * 3 + 1) % WORDS, "losses": losses} if ends else {}))
        squares = sum(p.grad.double().square().sum() for p in parameters)
        dist.all_reduce(squares)
        optimizer.step()
        optimizer.zero_grad()
        if ends:
            loss = sum(one.item() for one in losses) / PARTS
            print(f"{name} step {step}: loss {loss:.6f} gradient {squares.item() ** 0.5:.6g}", flush=True)


dist.init_process_group("gloo")
for kind in (ScheduleGPipe, Schedule1F1B):
    for name, stage in (("by hand", by_hand([RANK], RANKS)[0]), ("at a module", at_a_module())):
        train(f"{kind.__name__} {name}", kind(stage, PARTS, loss_fn=loss_of), [stage])
for kind in (ScheduleInterleaved1F1B, ScheduleLoopedBFS):
    stages = by_hand((RANK, RANK + RANKS), 2 * RANKS)
    train(kind.__name__, kind(stages, PARTS, loss_fn=loss_of), stages)
dist.destroy_process_group()
