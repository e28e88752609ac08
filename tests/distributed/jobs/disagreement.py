"""Rank 1 gives a collective another size, dtype or reduction than the others, or calls another one: an error on every rank.

Small and large tensors, on purpose without any debug level. Every case has a group of its own, as it cannot be used afterwards.
"""

import itertools
import os
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

SIZES = (4, 5000)


def all_reduce(group, count, dtype, op):
    dist.all_reduce(torch.ones(count, dtype=dtype), op=op, group=group)


def all_gather(group, count, dtype, op):
    parts = [torch.zeros(count, dtype=dtype) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, torch.ones(count, dtype=dtype), group=group)


def all_gather_into_tensor(group, count, dtype, op):
    whole = torch.zeros(count * dist.get_world_size(), dtype=dtype)
    dist.all_gather_into_tensor(whole, torch.ones(count, dtype=dtype), group=group)


def reduce_scatter(group, count, dtype, op):
    parts = [torch.ones(count, dtype=dtype) for _ in range(dist.get_world_size())]
    dist.reduce_scatter(torch.zeros(count, dtype=dtype), parts, op=op, group=group)


def reduce_scatter_tensor(group, count, dtype, op):
    whole = torch.ones(count * dist.get_world_size(), dtype=dtype)
    dist.reduce_scatter_tensor(torch.zeros(count, dtype=dtype), whole, op=op, group=group)


def all_to_all(group, count, dtype, op):
    parts = [torch.ones(count, dtype=dtype) for _ in range(dist.get_world_size())]
    dist.all_to_all([torch.zeros_like(part) for part in parts], parts, group=group)


def all_to_all_single(group, count, dtype, op):
    whole = torch.ones(count * dist.get_world_size(), dtype=dtype)
    dist.all_to_all_single(torch.zeros_like(whole), whole, group=group)


def barrier(group, count, dtype, op):
    dist.barrier(group=group)


REDUCTIONS = (all_reduce, reduce_scatter, reduce_scatter_tensor)
OTHERS = (all_gather, all_gather_into_tensor, all_to_all, all_to_all_single)


def cases():
    """(description, what rank 1 does, what the others do)."""
    for name, count in itertools.product((*REDUCTIONS, *OTHERS), SIZES):
        plain = (name, count, torch.float32, ReduceOp.SUM)
        yield f"{name.__name__} {count} size", (name, count + 1, *plain[2:]), plain
        yield f"{name.__name__} {count} less", (name, count - 1, *plain[2:]), plain
        yield f"{name.__name__} {count} dtype", (name, count, torch.int32, plain[3]), plain
        yield f"{name.__name__} {count} width", (name, count, torch.bfloat16, plain[3]), plain
        if name in REDUCTIONS:
            yield f"{name.__name__} {count} reduction", (*plain[:3], ReduceOp.MAX), plain
        yield f"{name.__name__} {count} large", (name, 1 << 18, *plain[2:]), plain
        yield f"{name.__name__} {count} other", (barrier, *plain[1:]), plain


def uneven(rank, size, wrong):
    """Splits of all_to_all_single that differ from pair to pair: correct ones, or with a part that the receiver does not expect."""
    sent = [rank + to + 1 for to in range(size)]
    received = [rank + of + 1 for of in range(size)]
    if wrong and rank == 1:
        received[0], received[-1] = received[0] + 1, received[-1] - 1
    group = dist.new_group()
    dist.all_to_all_single(torch.zeros(sum(received)), torch.ones(sum(sent)), received, sent, group=group)


def broadcast_of_another_dtype(rank, size):
    """The root can finish a broadcast alone. The difference is found at the next operation that no rank can finish alone."""
    group = dist.new_group()
    dist.broadcast(torch.ones(4, dtype=torch.int32 if rank == 1 else torch.float32), 0, group=group)
    dist.barrier(group=group)


def refused(call, *arguments) -> str:
    try:
        call(*arguments)
    except dist.DistBackendError as err:
        return "refused" if "Detected mismatch" in str(err) else f"another error: {err}"
    return "not noticed"


def say(text):
    os.write(1, f"{text}\n".encode())  # in one piece: the ranks share the pipe


def main():
    dist.init_process_group("gloo", timeout=timedelta(seconds=20))
    rank, size = dist.get_rank(), dist.get_world_size()
    results = []
    for what, one, others in cases():
        name, *arguments = one if rank == 1 else others
        results.append((what, refused(name, dist.new_group(), *arguments)))
    uneven(rank, size, wrong=False)
    results.append(("uneven parts", refused(uneven, rank, size, True)))
    results.append(("broadcast", refused(broadcast_of_another_dtype, rank, size)))
    for what, result in results:
        if result != "refused":
            say(f"rank {rank}: {what}: {result}")
    dist.all_reduce(torch.ones(1))  # the job's own group has met none of it
    say(f"rank {rank}: {len(results)} cases")
    dist.destroy_process_group()


main()
