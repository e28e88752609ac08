"""Rank 1 of a job fails before or in an operation: fault.py OPERATION FAULT."""

import os
import signal
import sys
import time
from datetime import timedelta

import torch
import torch.distributed as dist


def _parts(rank, size):
    return [torch.ones(4) for _ in range(size)]


def _message(rank, size):
    if rank == 0:
        dist.recv(torch.ones(4), 1)
    elif rank == 1:
        dist.send(torch.ones(4), 0)


# The roots are chosen such that some rank waits for rank 1.
OPERATIONS = {
    "all_reduce": lambda rank, size: dist.all_reduce(torch.ones(4)),
    "reduce": lambda rank, size: dist.reduce(torch.ones(4), 0),
    "broadcast": lambda rank, size: dist.broadcast(torch.ones(4), 1),
    "all_gather": lambda rank, size: dist.all_gather(_parts(rank, size), torch.ones(4)),
    "all_gather_into_tensor": lambda rank, size: dist.all_gather_into_tensor(
        torch.ones(4 * size), torch.ones(4)
    ),
    "gather": lambda rank, size: dist.gather(torch.ones(4), None if rank else _parts(rank, size), 0),
    "scatter": lambda rank, size: dist.scatter(torch.ones(4), _parts(rank, size) if rank == 1 else None, 1),
    "reduce_scatter": lambda rank, size: dist.reduce_scatter(torch.ones(4), _parts(rank, size)),
    "reduce_scatter_tensor": lambda rank, size: dist.reduce_scatter_tensor(
        torch.ones(4), torch.ones(4 * size)
    ),
    "all_to_all": lambda rank, size: dist.all_to_all(_parts(rank, size), _parts(rank, size)),
    "all_to_all_single": lambda rank, size: dist.all_to_all_single(
        torch.ones(4 * size), torch.ones(4 * size)
    ),
    "barrier": lambda rank, size: dist.barrier(),
    "message": _message,
    "large_all_reduce": lambda rank, size: dist.all_reduce(torch.ones(1 << 20)),
    "large_broadcast": lambda rank, size: dist.broadcast(torch.ones(1 << 20), 1),
    "large_all_gather": lambda rank, size: dist.all_gather_into_tensor(
        torch.ones(size << 20), torch.ones(1 << 20)
    ),
    "large_reduce_scatter": lambda rank, size: dist.reduce_scatter_tensor(
        torch.ones(1 << 20), torch.ones(size << 20)
    ),
    "large_all_to_all": lambda rank, size: dist.all_to_all_single(
        torch.ones(size << 20), torch.ones(size << 20)
    ),
    "objects": lambda rank, size: dist.all_gather_object([None] * size, rank),
}


def main():
    operation, fault = sys.argv[1:]
    dist.init_process_group("gloo", timeout=timedelta(seconds=120))
    rank, size = dist.get_rank(), dist.get_world_size()
    dist.all_reduce(torch.ones(1))
    dist.all_reduce(torch.ones(1 << 20))
    dist.barrier()  # all ranks are here, however busy the machine is; now a short timeout finds the fault alone
    if fault != "none":
        dist.distributed_c10d._set_pg_timeout(timedelta(seconds=3))
    if rank == 1:
        if fault == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        elif fault == "stopped":
            os.kill(os.getpid(), signal.SIGSTOP)
        elif fault == "raising":
            raise ValueError("the fault of rank 1")
        elif fault == "late":
            time.sleep(600)
        elif fault == "out of step":
            other = "all_gather" if operation == "all_reduce" else "all_reduce"
            OPERATIONS[other](rank, size)
    OPERATIONS[operation](rank, size)
    dist.barrier()


main()
