"""The shared memory of a group whose ranks are on one machine (csrc/distributed).

It is an anonymous file of the group's first rank, so nothing is left behind however the processes end.
"""

import os
import struct

from .._host.native import load
from . import mpi_world
from .errors import DistBackendError
from .signatures import Waiting

_C = load()

_SLOT = 1 << 19  # bytes of a chunk; the slots of a few ranks fit a processor's shared cache
_PATIENCE = 0.00005  # seconds for which a poll waits for the first chunk of the other ranks
# MPI's message about a large one: a mark, the size and the number of the message. Ordinary data is very unlikely to begin with
# the mark.
_ANNOUNCEMENT = struct.Struct("<8sQQ")
_MARK = b"\xd5large\x9c\xe1"


class Request(Waiting):
    """The request of a collective, which a Work polls. The exchange itself compares the signatures."""

    def __init__(self, signatures, exchange):
        super().__init__(signatures)
        self._exchange = exchange

    def own(self) -> bytes:
        return _C.shared_signature(self._exchange)

    def Test(self) -> bool:  # noqa: N802  as MPI's
        try:
            return _C.shared_test(self._exchange, _PATIENCE)
        except RuntimeError:
            rank, other = _C.shared_difference(self._exchange)
            if rank >= 0:
                self._signatures.refuse(self.own(), other, rank)
            raise

    def explain(self) -> None:
        """Raise what other ranks have found."""
        self._signatures.hear()


class _Send:
    """A message in flight, and the MPI request that announces it."""

    def __init__(self, transfer, request, keep):
        self._transfer, self._request, self._keep = transfer, request, keep

    def Test(self) -> bool:  # noqa: N802  as MPI's
        """Makes progress and returns True if the message has been sent."""
        return _C.channels_test(self._transfer, _PATIENCE) and self._request.Test()


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
    """The shared memory of a group: `slots` for its collectives, and channels for its messages."""

    def __init__(self, comm, slots, channels):
        self._comm, self.slots, self._channels = comm, slots, channels

    def send(self, data, dst: int, tag: int) -> _Send:
        """Sends contiguous data to a rank. MPI sends the number of the message, so tags and senders match as usual."""
        transfer, number = _C.channels_send(self._channels, data, dst)
        announcement = _ANNOUNCEMENT.pack(_MARK, data.nbytes, number)
        request = self._comm.Isend([announcement, mpi_world.job.mpi.BYTE], dst, tag)
        return _Send(transfer, request, announcement)

    def receive(self, target, src: int, tag: int) -> _Receive:
        """Receives a message of `src`, which may be MPI.ANY_SOURCE, into the contiguous `target`."""
        announcement = bytearray(_ANNOUNCEMENT.size)
        request = self._comm.Irecv([announcement, mpi_world.job.mpi.BYTE], src, tag)
        return _Receive(self._channels, target, announcement, request)


def create(comm, ranks, ledger) -> SharedMemory | None:
    """Creates the shared memory of a new group; None if its ranks cannot share memory. All ranks must call this.

    ledger: of the group's signatures.
    """
    if any(rank not in mpi_world.job.neighbours for rank in ranks) or not hasattr(os, "memfd_create"):
        return None
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
            _C.shared_open(file, len(ranks), rank, _SLOT, ledger),
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
    return opened if everywhere else None
