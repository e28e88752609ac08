"""Rank 1 gives a collective another size, dtype or reduction than the others, or calls another one: an error on every rank.

Small and large tensors, on purpose without any debug level. Every case has a group of its own, as it cannot be used afterwards.
"""

import itertools
import os
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed import ReduceOp

from msadapter.distributed import signatures

SIZES = (4, 5000)
signatures._SOON = 0.2  # seconds until a rank that waits compares what it waits for
TIMEOUT = 60.0  # seconds; a mismatch that is noticed by it alone is noticed late


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


def gather(group, count, dtype, op, root=0):
    size = dist.get_world_size()
    parts = [torch.zeros(count, dtype=dtype) for _ in range(size)] if dist.get_rank() == root else None
    dist.gather(torch.ones(count, dtype=dtype), parts, root, group=group)


def gather_into(group, count, dtype, op, root=0):
    """The receiver has other tensors than the senders."""
    size = dist.get_world_size()
    parts = [torch.zeros(4 if part == root else count, dtype=dtype) for part in range(size)]
    mine = torch.ones(4, dtype=dtype)
    dist.gather(mine, parts if dist.get_rank() == root else None, root, group=group)


def scatter(group, count, dtype, op, root=0):
    size = dist.get_world_size()
    parts = [torch.ones(count, dtype=dtype) for _ in range(size)] if dist.get_rank() == root else None
    dist.scatter(torch.zeros(count, dtype=dtype), parts, root, group=group)


def reduce(group, count, dtype, op, root=0):
    dist.reduce(torch.ones(count, dtype=dtype), root, op=op, group=group)


def broadcast(group, count, dtype, op, root=0):
    dist.broadcast(torch.ones(count, dtype=dtype), root, group=group)


LARGE = 1 << 18


def rooted_cases(size):
    """The same for the operations with a root, where rank 1 is another rank than the root, or the root itself."""
    for root in (0, 1):
        for name in (gather, scatter, reduce, broadcast):
            plain = (name, 4, torch.float32, ReduceOp.SUM, root)
            yield f"{name.__name__} to {root} size", (name, 5, *plain[2:]), plain
            yield f"{name.__name__} to {root} less", (name, 3, *plain[2:]), plain
            yield f"{name.__name__} to {root} dtype", (name, 4, torch.int32, *plain[3:]), plain
            yield f"{name.__name__} to {root} other", (barrier, *plain[1:4]), plain
        plain = (reduce, 4, torch.float32, ReduceOp.SUM, root)
        yield f"reduce to {root} reduction", (*plain[:3], ReduceOp.MAX, root), plain
        plain = (broadcast, LARGE, torch.float32, ReduceOp.SUM, root)
        yield f"large broadcast of {root} size", (broadcast, LARGE + 1, *plain[2:]), plain
        yield f"large broadcast of {root} less", (broadcast, LARGE - 1, *plain[2:]), plain
        yield f"large broadcast of {root} dtype", (broadcast, LARGE, torch.int32, *plain[3:]), plain
        yield f"large broadcast of {root} small", (broadcast, 4, *plain[2:]), plain
        yield f"large broadcast of {root} other", (barrier, *plain[1:4]), plain
        small = (broadcast, 4, *plain[2:])
        yield f"small broadcast of {root} large", plain, small
    for name in (gather, scatter, reduce, broadcast):
        plain = (name, 4, torch.float32, ReduceOp.SUM, 0)
        yield f"{name.__name__} another root", (*plain[:4], 1), plain
    plain = (broadcast, LARGE, torch.float32, ReduceOp.SUM, 0)
    yield "large broadcast another root", (*plain[:4], 1), plain
    same = (gather_into, 5, torch.float32, ReduceOp.SUM, 1)
    yield "gather into larger parts", same, same


def then_a_barrier(name, group, *arguments):
    """Ranks that only send their own data get the error in the next operation in which they wait for others."""
    name(group, *arguments)
    dist.barrier(group=group)


def refused(call, *arguments) -> str:
    begin = time.monotonic()
    try:
        call(*arguments)
    except dist.DistBackendError as err:
        found = "refused" if "Detected mismatch" in str(err) else f"another error: {err}"
        return found if time.monotonic() - begin < TIMEOUT / 2 else "refused late"
    return "not noticed"


def say(text):
    os.write(1, f"{text}\n".encode())  # in one piece: the ranks share the pipe


def message(rank, sent, received):
    """Rank 0 sends to rank 1, whose tensor has another size. Only the receiver can tell."""
    group = dist.new_group()
    if rank == 0:
        dist.isend(torch.ones(sent), 1, group=group)
    if rank != 1:
        return "refused"
    try:
        dist.recv(torch.zeros(received), 0, group=group)
    except dist.DistBackendError as err:
        if "sent" in str(err) or "truncated" in str(err):
            return "refused"
        return f"another error: {err}"
    return "not noticed"


MESSAGES = (
    (4, 3),
    (4, 5),
    (0, 4),
    (LARGE, 4),
    (LARGE, 6),
    (LARGE, 2),
    (6, LARGE),
    (2, LARGE),
    (LARGE, LARGE + 1),
)


def main():
    if "MSADAPTER_TEST_MPI" in os.environ:
        del os.memfd_create  # without it, a group has no shared memory, and all collectives go through MPI
    dist.init_process_group("gloo", timeout=timedelta(seconds=TIMEOUT))
    rank, size = dist.get_rank(), dist.get_world_size()
    results = []
    for what, one, others in cases():
        name, *arguments = one if rank == 1 else others
        results.append((what, refused(name, dist.new_group(), *arguments)))
    uneven(rank, size, wrong=False)
    results.append(("uneven parts", refused(uneven, rank, size, True)))
    for what, one, others in rooted_cases(size):
        name, *arguments = one if rank == 1 else others
        results.append((what, refused(then_a_barrier, name, dist.new_group(), *arguments)))
    results += [(f"message {sent} {wanted}", message(rank, sent, wanted)) for sent, wanted in MESSAGES]
    for what, result in results:
        if result != "refused":
            say(f"rank {rank}: {what}: {result}")
    dist.all_reduce(torch.ones(1))  # the job's own group has met none of it
    say(f"rank {rank}: {len(results)} cases")
    dist.destroy_process_group()


main()
