"""Large collectives between the ranks of one machine, through memory that all of them map (csrc/distributed/exchange.h).

MPI moves such tensors in pieces of 64 KB that it copies twice, and reduces sixteen-bit floats in a copy of float32.
The memory is an anonymous file of the group's first rank: nothing is left behind, whatever ends the processes.
"""

import os

from .._host.native import load
from . import mpi_world
from .errors import DistBackendError
from .reduce_op import ReduceOp

_C = load()

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


class _Transfer:
    """Messages on their way, with an MPI request that goes with them (None: nothing does)."""

    def __init__(self, transfers, request=None, keep=None):
        self._transfers, self._request, self._keep = transfers, request, keep

    def together_with(self, request):
        """This, ended when an MPI request has ended too."""
        self._request = request
        return self

    def Test(self) -> bool:  # noqa: N802  as MPI's
        """Move on; whether all have ended."""
        return _C.channels_test(self._transfers, _PATIENCE) and (
            self._request is None or self._request.Test()
        )


class _Receive:
    """A message that MPI announces: which of the sender's it is."""

    def __init__(self, channels, target, announcement, request):
        self._channels, self._target, self._transfer = channels, target, None
        self._announcement, self._request = announcement, request

    def Test(self, status=None) -> bool:  # noqa: N802  as MPI's
        """Move on; whether it has come. `status` gets the sender."""
        if self._transfer is None:
            seen = mpi_world.job.mpi.Status()
            if not self._request.Test(seen):
                return False
            self._source = seen.Get_source()
            number = int.from_bytes(self._announcement, "little")
            self._transfer = _C.channels_receive(self._channels, self._target, self._source, number)
        if status is not None:
            status.Set_source(self._source)
        return _C.channels_test(self._transfer, _PATIENCE)


class SharedMemory:
    """The shared memory of one group. The ranks decide by what those that take part know whether an operation goes through
    it."""

    def __init__(self, comm, slots, channels):
        self._comm, self._slots, self._channels = comm, slots, channels

    def carries(self, size: int) -> bool:
        """Whether so many bytes are better off here."""
        return size >= _LARGE

    def reduces(self, tensor, op) -> bool:
        """Whether a reduction of this tensor is."""
        code = _REDUCTIONS.get(ReduceOp(op).op.name) if self.carries(tensor.nbytes) else None
        return code is not None and _C.shared_reduces(tensor, code)

    def all_reduce(self, data, op) -> _Request:
        """data (contiguous) = reduction over the group."""
        return _Request(_C.shared_all_reduce, self._slots, data, _REDUCTIONS[ReduceOp(op).op.name])

    def reduce_scatter(self, output, data, counts, op) -> _Request:
        """output = own part (counts[rank] elements) of the reduction of data; both contiguous."""
        return _Request(
            _C.shared_reduce_scatter, self._slots, output, data, counts, _REDUCTIONS[ReduceOp(op).op.name]
        )

    def all_gather(self, output, data, sizes) -> _Request:
        """output = everybody's data (sizes: bytes by rank); both contiguous."""
        return _Request(_C.shared_all_gather, self._slots, output, data, sizes)

    def broadcast(self, data, root: int) -> _Request:
        """data (contiguous) = that of root."""
        return _Request(_C.shared_broadcast, self._slots, data, root)

    def send(self, data, dst: int, tag: int) -> _Transfer:
        """data (contiguous) to a rank of the group; MPI carries its number, so that tags and senders match as always."""
        transfer, number = _C.channels_send(self._channels, data, dst)
        announcement = number.to_bytes(8, "little")
        return _Transfer(
            transfer, self._comm.Isend([announcement, mpi_world.job.mpi.BYTE], dst, tag), announcement
        )

    def receive(self, target, src: int, tag: int) -> _Receive:
        """target (contiguous) = a message of `src`, or MPI.ANY_SOURCE."""
        announcement = bytearray(8)
        request = self._comm.Irecv([announcement, mpi_world.job.mpi.BYTE], src, tag)
        return _Receive(self._channels, target, announcement, request)

    def exchange(self, output, data, received, sent) -> _Transfer:
        """Those parts of an all-to-all (sizes in bytes by rank) that are large and another's."""
        return _Transfer(_C.channels_exchange(self._channels, output, data, received, sent, _LARGE))


class _NoSharedMemory:
    """Ranks that share no memory: nothing goes through it."""

    def carries(self, size: int) -> bool:
        return False

    def reduces(self, tensor, op) -> bool:
        return False


NONE = _NoSharedMemory()


def create(comm, ranks) -> SharedMemory | _NoSharedMemory:
    """The shared memory of a new group (collective), NONE where its ranks cannot share any."""
    if any(rank not in mpi_world.job.neighbours for rank in ranks) or not hasattr(os, "memfd_create"):
        return NONE
    rank, page = comm.Get_rank(), os.sysconf("SC_PAGE_SIZE")
    offset = -(-_C.shared_bytes(len(ranks), _SLOT) // page) * page
    file = -1
    if rank == 0:
        file = os.memfd_create("torch.distributed", os.MFD_CLOEXEC)
        os.ftruncate(file, offset + _C.channels_bytes(len(ranks)))  # pages that nobody touches cost nothing
    owner, number = comm.bcast((os.getpid(), file), root=0)
    opened = None
    try:
        if rank:
            file = os.open(f"/proc/{owner}/fd/{number}", os.O_RDWR | os.O_CLOEXEC)
        slots, channels = (
            _C.shared_open(file, len(ranks), rank, _SLOT),
            _C.channels_open(file, offset, len(ranks), rank),
        )
        opened = SharedMemory(comm, slots, channels)
    except (
        OSError,
        RuntimeError,
    ):  # a system that does not let one look at another's files: MPI alone does the work
        pass
    everywhere = comm.allreduce(opened is not None, mpi_world.job.mpi.LAND)
    if file >= 0:
        os.close(file)
    return opened if everywhere else NONE
