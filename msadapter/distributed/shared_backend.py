"""The collectives of a process group whose CPU ranks are on one machine, through shared memory (csrc/distributed/exchange.h).

The native layer signs an operation, starts it, and compares the signatures. Operations that it does not have, such as
reductions of booleans, and small messages go through MPI. Whether an operation uses shared memory depends only on values
that all participating ranks know, so they decide alike.
"""

import functools
import threading
import zlib

from .._host.native import load
from . import hccl_backend, mpi_world, shared_memory
from .backend import SingleProcess, register
from .errors import DistBackendError
from .mpi_backend import MpiBackend
from .mpi_buffers import packed, write
from .signatures import Signatures
from .work import MpiWork, Work

_C = load()

_LARGE = 1 << 19  # bytes from which a message uses shared memory
_SOON = 0.001  # seconds for which wait() lets the native layer wait for the other ranks


class SharedWork(MpiWork):
    """A collective through shared memory. Its exchange moves the data and compares the signatures.

    It is made for every call, so it computes only what is asked for.
    """

    message, _source, _exception, _ended = False, -1, None, False
    _keep = _request = None  # the exchange keeps the memory alive, and nothing else writes to it

    def __init__(self, backend, name, tensor, exchange, result, finish):
        self.backend, self.name, self.sequence = backend, name, backend.sequence
        self._tensor, self._exchange, self._result, self._finish = tensor, exchange, result, finish
        self._lock = threading.Lock()

    @property
    def shape(self):
        return None if self._tensor is None else tuple(self._tensor.shape)

    @property
    def dtype(self):
        return None if self._tensor is None else self._tensor.dtype

    @functools.cached_property
    def _record(self):
        return shared_memory.Request(self.backend._signatures, self._exchange)

    def _test(self) -> bool:
        try:
            return self._record.Test()
        except Exception:
            self._record.explain()
            raise

    def _complete(self, timeout=None):
        if not self._ended and not self._others_come_soon():
            super()._complete(timeout)
            return
        if self._exception is not None:
            raise self._exception
        if self._finish is not None:
            finish, self._finish = self._finish, None
            finish()

    def _others_come_soon(self) -> bool:
        try:
            self._ended = _C.shared_test(self._exchange, _SOON)
        except RuntimeError:  # a poll raises it again, with its explanation
            return False
        return self._ended


class SharedBackend(MpiBackend):
    """A backend with the methods of backend.SingleProcess for the ranks of one machine."""

    def __init__(self, comm, rank: int, ranks, timeout, signatures, shared):
        super().__init__(comm, rank, ranks, timeout, signatures)
        self._shared = shared

    def _started(self, name, tensor, result, finish, start, *arguments) -> Work | None:
        """Starts an operation. None if the native layer does not have it."""
        sequence = self.sequence + 1
        self._signatures.check_whole(name)
        try:
            exchange = start(self._shared.slots, sequence, *arguments)
        except RuntimeError as err:  # an earlier collective of the group has failed
            raise DistBackendError(f"{name}: {err}") from err
        if exchange is None:
            return None
        self.sequence = sequence
        self.position = work = SharedWork(self, name, tensor, exchange, result, finish)
        return work

    def allreduce(self, tensor, op) -> Work:
        """tensor = reduction over the group."""
        data, finish = _in_place(tensor)
        number = getattr(op, "op", op)
        work = self._started("ALLREDUCE", tensor, [tensor], finish, _C.shared_all_reduce, data, number)
        return super().allreduce(tensor, op) if work is None else work

    def reduce_scatter_into(self, output, tensor, op) -> Work:
        """output = this rank's part of the reduction of `tensor` over the group."""
        work = self._scattered(output, tensor, op, (), "_REDUCE_SCATTER_BASE")
        return super().reduce_scatter_into(output, tensor, op) if work is None else work

    def reduce_scatter(self, output, inputs, op) -> Work:
        """output = inputs[this rank], reduced over the group."""
        counts = [t.numel() for t in inputs]
        work = self._scattered(output, packed(inputs), op, counts, "REDUCE_SCATTER")
        return super().reduce_scatter(output, inputs, op) if work is None else work

    def _scattered(self, output, tensor, op, counts, name):
        target, finish = _target(output)
        arguments = (target, _contiguous(tensor), counts, getattr(op, "op", op))
        return self._started(name, output, [output], finish, _C.shared_reduce_scatter, *arguments)

    def broadcast(self, tensor, root: int) -> Work:
        """tensor = the tensor of `root`."""
        data, finish = _in_place(tensor)
        finish = None if self.rank == root else finish
        return self._started("BROADCAST", tensor, [tensor], finish, _C.shared_broadcast, data, root)

    def allgather(self, outputs, tensor) -> Work:
        """outputs[i] = the tensor of process i (sizes may differ)."""
        targets, finish = _targets(outputs)
        start, data = _C.shared_all_gather, _contiguous(tensor)
        return self._started("ALLGATHER", tensor, outputs, finish, start, targets, data)

    def allgather_into(self, output, tensor) -> Work:
        """output = the tensors of all processes, concatenated."""
        target, finish = _target(output)
        start, data = _C.shared_all_gather, _contiguous(tensor)
        return self._started("_ALLGATHER_BASE", tensor, [output], finish, start, target, data)

    def alltoall(self, outputs, inputs) -> Work:
        """outputs[i] = process i's inputs[this rank]."""
        targets, finish = _targets(outputs)
        data = [_contiguous(tensor) for tensor in inputs]
        start = _C.shared_all_to_all
        return self._started("ALLTOALL", inputs[0], outputs, finish, start, targets, data, (), ())

    def alltoall_single(self, output, tensor, output_sizes, input_sizes) -> Work:
        """The same as alltoall, with parts of one tensor along dimension 0."""
        target, finish = _target(output)
        arguments = (target, _contiguous(tensor), output_sizes, input_sizes)
        return self._started("ALLTOALL", tensor, [output], finish, _C.shared_all_to_all, *arguments)

    def barrier(self) -> Work:
        """Wait for all processes."""
        return self._started("BARRIER", None, [], None, _C.shared_barrier)

    def _send(self, data, dst: int, tag: int):
        send = self._shared.send if data.nbytes >= _LARGE else super()._send
        return send(data, dst, tag)

    def _receive(self, target, source: int, tag: int):
        receive = self._shared.receive if target.nbytes >= _LARGE else super()._receive
        return receive(target, source, tag)

    def close(self) -> None:
        """Releases the resources of the group, which is destroyed."""
        self._shared = None
        super().close()


def _contiguous(tensor):
    return tensor if tensor.is_contiguous() else tensor.data.contiguous()


def _in_place(tensor):
    """(contiguous tensor to work on, function that writes the result to `tensor` afterwards, or None)."""
    if tensor.is_contiguous():
        return tensor, None
    data = tensor.data.contiguous()
    return data, lambda: write(tensor, data)


def _target(output):
    """(contiguous tensor for the result, function that writes it to `output` afterwards, or None)."""
    if output.is_contiguous():
        return output, None
    target = output.new_empty(output.shape)
    return target, lambda: write(output, target)


def _targets(outputs):
    """The same for several outputs."""
    each = [_target(output) for output in outputs]
    finishes = [finish for _, finish in each if finish is not None]

    def finish():
        for one in finishes:
            one()

    return [target for target, _ in each], finish if finishes else None


def _create(rank, world_size, ranks, store, timeout, parent=None):
    """Creates the backend of a new group: of the whole job, which is joined here, or of some ranks of `parent`."""
    if world_size == 1:
        return SingleProcess()
    if parent is None:
        comm = mpi_world.join(store, rank, world_size, timeout)
    else:
        everyone = parent.comm.Get_group()
        # Operations may hang forever in the communicator of an aborted group.
        through = mpi_world.job.mpi.COMM_WORLD if getattr(parent, "aborted", "") else parent.comm
        comm = through.Create_group(everyone.Incl(ranks), _group_tag(store))
    return _over(comm, rank, ranks, timeout)


def _over(comm, rank, ranks, timeout):
    """A backend over a communicator. All its ranks must call this."""
    signatures = Signatures(mpi_world.job.mpi, comm.Dup(), list(ranks), mpi_world.job.store)
    shared = shared_memory.create(comm, list(ranks), signatures.ledger)
    if shared is None:
        return MpiBackend(comm, rank, ranks, timeout, signatures)
    return SharedBackend(comm, rank, ranks, timeout, signatures, shared)


def rebuilt(old: MpiBackend, store) -> MpiBackend:
    """A backend of the same ranks that shares nothing with the old one, which was aborted. All its ranks must call this."""
    old._signatures.withdraw()
    comm = old.mpi.COMM_WORLD.Create_group(old.comm.Get_group(), _group_tag(store))
    return _over(comm, old.rank, old.ranks, old.timeout)


def _group_tag(store) -> int:
    """A tag that distinguishes groups that are created at the same time, from the number in their name."""
    return zlib.crc32(store._prefix.encode()) % 32768


def _create_on_device(*arguments):
    """The backend of the accelerator. Without an accelerator, its memory is host memory, so the MPI backend is used."""
    return (hccl_backend.create if hccl_backend.present() else _create)(*arguments)


for _name in ("mpi", "gloo", "ucc"):
    register(_name, _create)
for _name in ("nccl", "hccl", "xccl"):
    register(_name, _create_on_device)
