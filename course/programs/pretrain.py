"""Trains the course's model with Megatron Core on any layout: torchrun --nproc_per_node N pretrain.py --tensor T --pipeline P ...

A plain program for PyTorch and Megatron Core, for chapter 2. `model.py` has the model. The weights begin the same on every layout,
so that losses can be compared. Rank 0 writes the losses to --losses. Each rank writes its checkpoint to --folder and goes on from
there.
"""

import argparse
import json
import os
import signal
import sys
import zlib
from pathlib import Path

import numpy
import torch
from megatron.core import parallel_state, tensor_parallel
from megatron.core.pipeline_parallel import get_forward_backward_func

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from model import Shape, megatron  # noqa: E402

SEQUENCE, LAYERS = 64, Shape().layers


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", required=True, help="prefixes of indexed data sets")
    parser.add_argument("--weights", nargs="+", type=float, help="their shares; equal by default")
    parser.add_argument("--tensor", type=int, default=1)
    parser.add_argument("--pipeline", type=int, default=1)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rows", type=int, default=8, help="rows of a step, on all ranks together")
    parser.add_argument("--micro", type=int, default=2, help="rows of a micro-batch")
    parser.add_argument("--save-every", type=int, default=5, help="steps between two checkpoints")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--losses", type=Path, required=True)
    parser.add_argument(
        "--die-at", type=int, default=-1, help="kill this process with SIGKILL before that step"
    )
    return parser.parse_args()


def rows_of(args):
    """Rows of SEQUENCE + 1 ids, each from the source that is furthest behind its share."""
    sources = [
        torch.from_numpy(numpy.fromfile(f"{prefix}.bin", numpy.uint16).astype(numpy.int64))
        for prefix in args.data
    ]
    weights = args.weights or [1.0] * len(sources)
    shares, taken = [w / sum(weights) for w in weights], [0] * len(sources)
    while True:
        number = sum(taken)
        behind = [share * max(number, 1) - count for share, count in zip(shares, taken, strict=True)]
        source = behind.index(max(behind))
        first = taken[source] * SEQUENCE % (len(sources[source]) - SEQUENCE - 1)
        taken[source] += 1
        yield sources[source][first : first + SEQUENCE + 1]


def same_weights(model):
    """Gives each parameter values that depend on its name in the whole model, of which a tensor-parallel rank has a part."""
    rank, size = (
        parallel_state.get_tensor_model_parallel_rank(),
        parallel_state.get_tensor_model_parallel_world_size(),
    )
    first = 0 if not parallel_state.get_pipeline_model_parallel_rank() else LAYERS // 2
    for name, parameter in model.named_parameters():
        parts = name.split(".")
        if parts[:2] == ["decoder", "layers"]:
            parts[2] = str(int(parts[2]) + first)
        if parameter.dim() == 1 and "norm" in name or "bias" in name:
            continue  # ones and zeros
        whole = list(parameter.shape)
        divided = getattr(parameter, "tensor_model_parallel", False)
        if divided:
            whole[parameter.partition_dim] *= size
        generator = torch.Generator().manual_seed(zlib.crc32(".".join(parts).encode()))
        values = torch.randn(whole, generator=generator) * 0.02
        if divided and "linear_fc1" in name:  # a rank has its half of gate, and below it its half of up
            gate, up = (part.chunk(size)[rank] for part in values.chunk(2))
            values = torch.cat([gate, up])
        elif divided:
            values = values.chunk(size, parameter.partition_dim)[rank]
        parameter.data.copy_(values)


def forward_step(batches, model):
    rows = next(batches)
    ids, labels = rows[:, :-1], rows[:, 1:]
    mask = torch.triu(torch.ones(1, 1, SEQUENCE, SEQUENCE, dtype=torch.bool), 1)
    places = torch.arange(SEQUENCE).expand_as(ids)
    return model(ids, places, mask, labels=labels), lambda losses: (
        losses.mean(),
        {"loss": losses.detach().mean()},
    )


def main():
    args = arguments()
    torch.distributed.init_process_group("gloo")
    parallel_state.initialize_model_parallel(args.tensor, args.pipeline)
    tensor_parallel.model_parallel_cuda_manual_seed(1, inference_rng_tracker=True)
    model = megatron(Shape(), args.tensor, args.pipeline, SEQUENCE)
    same_weights(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    rank, losses, begin = torch.distributed.get_rank(), [], 0
    data_rank, data_size = (
        parallel_state.get_data_parallel_rank(),
        parallel_state.get_data_parallel_world_size(),
    )
    checkpoint = args.folder / f"rank{rank}.pt"
    if checkpoint.exists():
        state = torch.load(
            checkpoint, weights_only=False
        )  # our own file; Megatron puts buffers of bytes into it
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        losses, begin = state["losses"], state["step"]
    rows = rows_of(args)
    for _ in range(begin * args.rows):
        next(rows)
    for step in range(begin, args.steps):
        if step == args.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        batch = torch.stack([next(rows) for _ in range(args.rows)])
        own = batch.chunk(data_size)[data_rank].split(args.micro)
        optimizer.zero_grad()
        told = get_forward_backward_func()(
            forward_step_func=forward_step,
            data_iterator=iter(own),
            model=model,
            num_microbatches=len(own),
            seq_length=SEQUENCE,
            micro_batch_size=args.micro,
            forward_only=False,
        )
        for (
            parameter
        ) in model.parameters():  # data parallelism by hand: the mean over the ranks that have other rows
            torch.distributed.all_reduce(parameter.grad, group=parallel_state.get_data_parallel_group())
            parameter.grad /= data_size
        optimizer.step()
        mean = torch.stack([part["loss"] for part in told]).mean() if told else torch.zeros(())
        torch.distributed.all_reduce(
            mean
        )  # one stage of the pipeline knows the loss; tensor-parallel ranks all do
        losses.append(mean.item() / (data_size * args.tensor))
        if (step + 1) % args.save_every == 0:
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "losses": losses,
                "step": step + 1,
            }
            torch.save(state, checkpoint.with_suffix(".part"))
            checkpoint.with_suffix(".part").replace(checkpoint)
    if rank == 0:
        args.losses.write_text(json.dumps(losses))


main()
