"""Large collectives between the ranks of one machine, through memory that all of them map (csrc/distributed/exchange.h).

MPI moves such tensors in pieces of 64 KB that it copies twice, and reduces sixteen-bit floats in a copy of float32.
The memory is an anonymous file of the group's first rank: nothing is left behind, whatever ends the processes.
"""

import os

from .. import _C
from . import mpi_world
from .errors import DistBackendError
from .reduce_op import ReduceOp

_SLOT = 1 << 19  # bytes of a chunk: the slots of a few ranks stay in a processor's shared cache
_LARGE = 1 << 19  # bytes from which this is faster than MPI
_PATIENCE = 0.00005  # seconds a poll waits for the others' first chunk
_REDUCTIONS = {"SUM": 0, "AVG": 1, "PRODUCT": 2, "MIN": 3, "MAX": 4, "BAND": 5, "BOR": 6, "BXOR": 7}


class _Request:
    """What a Work polls."""

    def __init__(self, start, *arguments):
        try:
            self._exchange = start(*arguments)
        except RuntimeError as err:  # an earlier collective of the group has failed
            raise DistBackendError(f"{start.__name__.removeprefix('shared_')}: {err}") from err

    def Test(self) -> bool:  # noqa: N802  as MPI's
        """Move on; whether it has ended."""
        return _C.shared_test(self._exchange, _PATIENCE)


class SharedMemory:
    """The shared memory of one group. All ranks decide by what all know whether an operation goes through it."""

    def __init__(self, slots):
        self._slots = slots

    def carries(self, size: int) -> bool:
        """Whether so many bytes are better off here."""
        return size >= _LARGE

    def reduces(self, tensor, size: int, op) -> bool:
        """Whether a reduction of this tensor is."""
        code = _REDUCTIONS.get(ReduceOp(op).op.name) if size >= _LARGE else None
        return code is not None and _C.shared_reduces(tensor, code)

    def all_reduce(self, data, op) -> _Request:
        """data (contiguous) = reduction over the group."""
        return _Request(_C.shared_all_reduce, self._slots, data, _REDUCTIONS[ReduceOp(op).op.name])

    def reduce_scatter(self, output, data, counts, op) -> _Request:
        """output = own part (counts[rank] elements) of the reduction of data; both contiguous."""
        return _Request(_C.shared_reduce_scatter, self._slots, output, data, counts, _REDUCTIONS[ReduceOp(op).op.name])

    def all_gather(self, output, data, sizes) -> _Request:
        """output = everybody's data (sizes: bytes by rank); both contiguous."""
        return _Request(_C.shared_all_gather, self._slots, output, data, sizes)

    def broadcast(self, data, root: int) -> _Request:
        """data (contiguous) = that of root."""
        return _Request(_C.shared_broadcast, self._slots, data, root)


def create(comm, ranks) -> SharedMemory | None:
    """The shared memory of a new group (collective), None where its ranks cannot share any."""
    if any(rank not in mpi_world.job.neighbours for rank in ranks) or not hasattr(os, "memfd_create"):
        return None
    size, rank = _C.shared_bytes(len(ranks), _SLOT), comm.Get_rank()
    file = -1
    if rank == 0:
        file = os.memfd_create("torch.distributed", os.MFD_CLOEXEC)
        os.ftruncate(file, size)
    owner, number = comm.bcast((os.getpid(), file), root=0)
    try:
        if rank:
            file = os.open(f"/proc/{owner}/fd/{number}", os.O_RDWR | os.O_CLOEXEC)
        slots = _C.shared_open(file, len(ranks), rank, _SLOT)
    except (OSError, RuntimeError):  # a system that does not let one look at another's files: MPI alone does the work
        slots = None
    everywhere = comm.allreduce(slots is not None, mpi_world.job.mpi.LAND)
    if file >= 0:
        os.close(file)
    return SharedMemory(slots) if everywhere else None


