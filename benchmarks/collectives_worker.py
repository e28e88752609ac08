"""One rank in the comparison of collectives. A line [operation, dtype, bytes, seconds] on stdin starts a turn of calls."""

from __future__ import annotations

import json
import os
import sys
import time

import torch
import torch.distributed as dist


def ping_pong(tensor, rank: int):
    """Ranks 0 and 1 send the tensor back and forth; the others do nothing."""
    if rank == 0:
        dist.send(tensor, 1)
        dist.recv(tensor, 1)
    elif rank == 1:
        dist.recv(tensor, 0)
        dist.send(tensor, 0)


def ddp_step():
    """Prepares a data-parallel step of the benchmark's GPT, with a separate batch for each rank."""
    from torch.nn.parallel import DistributedDataParallel

    from benchmarks.works import gpt

    return gpt.training_step(gpt.Config(micro_batches=1), DistributedDataParallel)


def call_of(operation: str, dtype: str, size: int):
    """A function without arguments that runs the operation once on a total of `size` bytes."""
    if operation == "GPT step":
        return ddp_step()
    rank, ranks = dist.get_rank(), dist.get_world_size()
    kind = getattr(torch, dtype)
    count = max(size // torch.empty(0, dtype=kind).element_size(), 1)
    whole = torch.zeros(-(-count // ranks) * ranks, dtype=kind)
    part, other = whole.chunk(ranks)[rank].clone(), torch.zeros_like(whole)
    parts = [torch.zeros_like(part) for _ in range(ranks)]
    return {
        "all_reduce": lambda: dist.all_reduce(whole),
        "all_gather_into_tensor": lambda: dist.all_gather_into_tensor(whole, part),
        "all_gather": lambda: dist.all_gather(parts, part),
        "reduce_scatter_tensor": lambda: dist.reduce_scatter_tensor(part, whole),
        "broadcast": lambda: dist.broadcast(whole, 0),
        "all_to_all_single": lambda: dist.all_to_all_single(other, whole),
        "ping-pong": lambda: ping_pong(whole, rank),
        "barrier": dist.barrier,
    }[operation]


class Turns:
    """Caches the latest prepared work and the number of calls per turn on which all ranks have agreed."""

    def __init__(self):
        self.key = None

    def seconds(self, operation: str, dtype: str, size: int, slice_seconds: float) -> float:
        if self.key != (operation, dtype, size):
            self.key, self.call = (operation, dtype, size), call_of(operation, dtype, size)
            self._run(2)
            calls = torch.tensor([max(1, min(2000, round(slice_seconds / max(self._run(2), 1e-7))))])
            dist.broadcast(calls, 0)
            self.calls = int(calls)
        return self._run(self.calls)

    def _run(self, calls: int) -> float:
        dist.barrier()
        begin = time.perf_counter()
        for _ in range(calls):
            self.call()
        return (time.perf_counter() - begin) / calls


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    print(json.dumps({"torch": torch.__version__}), file=answers, flush=True)
    turns = Turns()
    for line in sys.stdin:
        try:
            answer = {"seconds": turns.seconds(*json.loads(line))}
        except Exception as error:  # sent to the driver, which stops
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


main()
