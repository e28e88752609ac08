"""Collectives on large tensors between the ranks of one machine through shared memory (csrc/distributed/exchange.h).

MPI transfers such tensors in pieces of 64 KB, which it copies twice, and reduces 16-bit floats in a float32 copy. The
shared memory is an anonymous file of the group's first rank, so nothing is left behind however the processes end.
"""

import os
import struct

from .._host.native import load
from . import mpi_world
from .errors import DistBackendError
from .reduce_op import ReduceOp

_C = load()

_SLOT = 1 << 19  # bytes of a chunk; the slots of a few ranks fit a processor's shared cache
# Sizes in bytes from which this is faster than MPI: of messages and parts of all_to_all, of broadcasts, of other collectives
_LARGE, _BROADCAST, _COLLECTIVE = 1 << 19, 1 << 16, 1 << 14
_PATIENCE = 0.00005  # seconds for which a poll waits for the first chunk of the other ranks
# MPI's message about a large one: a mark, the size and the number of the message. Nobody sends these bytes by chance.
_ANNOUNCEMENT = struct.Struct("<8sQQ")
_MARK = b"\xd5large\x9c\xe1"
_REDUCTIONS = {"SUM": 0, "AVG": 1, "PRODUCT": 2, "MIN": 3, "MAX": 4, "BAND": 5, "BOR": 6, "BXOR": 7}


class _Request:
    """The request of a collective, which a Work polls."""

    def __init__(self, start, *arguments):
        try:
            self._exchange = start(*arguments)
        except RuntimeError as err:  # an earlier collective of the group has failed
            raise DistBackendError(f"{start.__name__.removeprefix('shared_')}: {err}") from err

    def Test(self) -> bool:  # noqa: N802  as MPI's
        """Makes progress and returns True if the operation has ended."""
        return _C.shared_test(self._exchange, _PATIENCE)


class _Transfer:
    """Messages in flight, with an optional MPI request that belongs to them."""

    def __init__(self, transfers, request=None, keep=None):
        self._transfers, self._request, self._keep = transfers, request, keep

    def together_with(self, request):
        """Returns this transfer, which now also waits for an MPI request."""
        self._request = request
        return self

    def Test(self) -> bool:  # noqa: N802  as MPI's
        """Makes progress and returns True if all messages have ended."""
        return _C.channels_test(self._transfers, _PATIENCE) and (
            self._request is None or self._request.Test()
        )


def check_size(source: int, sent: int, wanted: int) -> None:
    """DistBackendError unless a message fits the tensor that receives it."""
    if sent != wanted:
        raise DistBackendError(
            f"rank {source} of the group has sent {sent} bytes, but the tensor that receives them has {wanted}"
        )


def announced(buffer, count: int) -> int | None:
    """The size of a large message if MPI's message of `count` bytes announces one."""
    if count != _ANNOUNCEMENT.size:
        return None
    mark, size, _ = _ANNOUNCEMENT.unpack_from(buffer)
    return size if mark == _MARK else None


class _Receive:
    """A receive. MPI's message carries the number of the sender's message in shared memory."""

    def __init__(self, channels, target, announcement, request):
        self._channels, self._target, self._transfer = channels, target, None
        self._announcement, self._request = announcement, request

    def Test(self, status=None) -> bool:  # noqa: N802  as MPI's
        """Makes progress and returns True if the message has arrived. `status` receives the sender."""
        if self._transfer is None:
            seen = mpi_world.job.mpi.Status()
            if not self._request.Test(seen):
                return False
            self._source = seen.Get_source()
            count = seen.Get_count(mpi_world.job.mpi.BYTE)
            size = announced(self._announcement, count)
            check_size(self._source, count if size is None else size, self._target.nbytes)
            number = _ANNOUNCEMENT.unpack_from(self._announcement)[2]
            self._transfer = _C.channels_receive(self._channels, self._target, self._source, number)
        if status is not None:
            status.Set_source(self._source)
        return _C.channels_test(self._transfer, _PATIENCE)


class SharedMemory:
    """The shared memory of a group.

    Whether an operation uses it depends only on values that all participating ranks know, so they decide alike.
    """

    def __init__(self, comm, slots, channels):
        self._comm, self._slots, self._channels = comm, slots, channels

    def carries(self, size: int) -> bool:
        """True if a message, or a part of an all-to-all, of this number of bytes uses shared memory."""
        return size >= _LARGE

    def broadcasts(self, size: int) -> bool:
        """True if a broadcast of this number of bytes uses shared memory. Then its root waits for all ranks."""
        return size >= _BROADCAST

    def gathers(self, size: int) -> bool:
        """True if an all-gather whose result has this number of bytes uses shared memory."""
        return size >= _COLLECTIVE

    def reduces(self, tensor, op) -> bool:
        """True if a reduction of this tensor uses shared memory."""
        code = _REDUCTIONS.get(ReduceOp(op).op.name) if tensor.nbytes >= _COLLECTIVE else None
        return code is not None and _C.shared_reduces(tensor, code)

    def all_reduce(self, data, op) -> _Request:
        """data = reduction over the group, in place. data is contiguous."""
        return _Request(_C.shared_all_reduce, self._slots, data, _REDUCTIONS[ReduceOp(op).op.name])

    def reduce_scatter(self, output, data, counts, op) -> _Request:
        """output = this rank's part (counts[rank] elements) of the reduction of data. Both are contiguous."""
        return _Request(
            _C.shared_reduce_scatter, self._slots, output, data, counts, _REDUCTIONS[ReduceOp(op).op.name]
        )

    def all_gather(self, output, data, sizes) -> _Request:
        """output = data of all ranks, concatenated. `sizes` are bytes by rank. Both are contiguous."""
        return _Request(_C.shared_all_gather, self._slots, output, data, sizes)

    def broadcast(self, data, root: int) -> _Request:
        """data = the data of root, in place. data is contiguous."""
        return _Request(_C.shared_broadcast, self._slots, data, root)

    def send(self, data, dst: int, tag: int) -> _Transfer:
        """Sends contiguous data to a rank. MPI sends the number of the message, so tags and senders match as usual."""
        transfer, number = _C.channels_send(self._channels, data, dst)
        announcement = _ANNOUNCEMENT.pack(_MARK, data.nbytes, number)
        return _Transfer(
            transfer, self._comm.Isend([announcement, mpi_world.job.mpi.BYTE], dst, tag), announcement
        )

    def receive(self, target, src: int, tag: int) -> _Receive:
        """Receives a message of `src`, which may be MPI.ANY_SOURCE, into the contiguous `target`."""
        announcement = bytearray(_ANNOUNCEMENT.size)
        request = self._comm.Irecv([announcement, mpi_world.job.mpi.BYTE], src, tag)
        return _Receive(self._channels, target, announcement, request)

    def exchange(self, output, data, received, sent) -> _Transfer:
        """Transfers the large parts of an all-to-all between different ranks. Sizes are bytes by rank."""
        return _Transfer(_C.channels_exchange(self._channels, output, data, received, sent, _LARGE))


class _NoSharedMemory:
    """Used by groups whose ranks share no memory. No operation uses it."""

    def carries(self, size: int) -> bool:
        return False

    broadcasts = gathers = carries

    def reduces(self, tensor, op) -> bool:
        return False


NONE = _NoSharedMemory()


def create(comm, ranks) -> SharedMemory | _NoSharedMemory:
    """Creates the shared memory of a new group; NONE if its ranks cannot share memory. All ranks must call this."""
    if any(rank not in mpi_world.job.neighbours for rank in ranks) or not hasattr(os, "memfd_create"):
        return NONE
    rank, page = comm.Get_rank(), os.sysconf("SC_PAGE_SIZE")
    offset = -(-_C.shared_bytes(len(ranks), _SLOT) // page) * page
    file = -1
    if rank == 0:
        file = os.memfd_create("torch.distributed", os.MFD_CLOEXEC)
        os.ftruncate(file, offset + _C.channels_bytes(len(ranks)))  # untouched pages take no memory
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
    ):  # the system forbids access to another process's files, so only MPI is used
        pass
    everywhere = comm.allreduce(opened is not None, mpi_world.job.mpi.LAND)
    if file >= 0:
        os.close(file)
    return opened if everywhere else NONE
