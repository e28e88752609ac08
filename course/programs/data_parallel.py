"""What data-parallel ranks keep, and when they exchange gradients: torchrun --nproc_per_node N data_parallel.py WAY

WAY is one of: all (each rank keeps everything), moments (ZeRO 1), sharded (ZeRO 3, by FSDP2), waits (gradients are exchanged
after the backward pass), overlaps (each as soon as it is there) and ddp (by PyTorch's DistributedDataParallel). Each rank prints a
line of JSON: the numbers that it keeps; or the sum of the gradient, and how many exchanges began before the backward pass ended.
"""

import json
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from model import Llama  # noqa: E402


def local(tensor):
    """The part of a tensor that is on this rank."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def kept(way):
    """The numbers that a rank keeps after a step: parameters, gradients and moments."""
    model = Llama()
    if way == "sharded":
        for block in model.model.layers:
            fully_shard(block)
        fully_shard(model)
    if way == "moments":
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model(torch.ones(2, 8, dtype=torch.int64)).sum().backward()
    optimizer.step()
    states = (optimizer.optim if way == "moments" else optimizer).state.values()
    return {
        "parameters": sum(local(p).numel() for p in model.parameters()),
        "gradients": sum(local(p.grad).numel() for p in model.parameters()),
        "moments": sum(local(t).numel() for state in states for t in state.values() if t.dim()),
    }


def exchanged(way):
    """One backward pass on rows of this rank, and the mean of the gradients over the ranks."""
    model, begun, works, ended = Llama(), [], [], []
    rows = torch.arange(130).view(2, 65) * (dist.get_rank() + 1) % 256
    wrapped = DistributedDataParallel(model) if way == "ddp" else model

    def begin(parameter):
        begun.append(not ended)
        works.append(dist.all_reduce(parameter.grad, async_op=True))

    if way == "overlaps":
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(begin)
    F.cross_entropy(wrapped(rows[:, :-1]).mT, rows[:, 1:]).backward()
    ended.append(True)
    if way == "waits":
        for parameter in model.parameters():
            begin(parameter)
    for work in works:
        work.wait()
    scale = 1 if way == "ddp" else dist.get_world_size()
    total = sum((p.grad / scale).double().abs().sum().item() for p in model.parameters())
    return {"gradient": total, "exchanges": len(begun), "early": sum(begun)}


def main():
    way = sys.argv[1]
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    found = kept(way) if way in ("all", "moments", "sharded") else exchanged(way)
    print(json.dumps({"rank": dist.get_rank()} | found) + "\n", end="", flush=True)
    dist.destroy_process_group()


main()
