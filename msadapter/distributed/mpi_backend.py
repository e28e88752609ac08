"""The collectives of a process group over MPI, for CPU ranks.

Each operation is a nonblocking MPI operation on the memory of the tensors; a Work polls it. 16-bit floats are reduced in
float32. Non-contiguous tensors and lists are sent as one flat copy. Groups on one machine use shared memory for most of
it (shared_backend.py).
"""

import ctypes

from .._host.native import load
from . import mpi_world
from .errors import DistBackendError
from .mpi_buffers import (
    Rooms,
    add,
    memory,
    mpi_op,
    packed,
    reducible,
    room,
    same_memory,
    settle,
    sum_parts,
    typed,
    write,
)
from .reduce_op import ReduceOp
from .shared_memory import announced, check_size
from .signatures import Agreement
from .work import MpiWork, Work, abandon

_C = load()

_SMALL = 4096  # bytes up to which MPI may copy a rank's own part
_FEW = 3  # ranks up to which gathering all tensors transfers fewer bytes than a reduction in float32


class _Receive:
    """The receive of a small message, which must have the size of the tensor."""

    def __init__(self, mpi, comm, target, source: int, tag: int):
        self._memory, self._size, self._status = memory(mpi, target), target.nbytes, mpi.Status()
        self._request, self._byte = comm.Irecv(self._memory, source, tag), mpi.BYTE

    def Test(self, status=None) -> bool:  # noqa: N802  as MPI's
        """True if the message has arrived. `status` receives the sender. DistBackendError if it has another size."""
        if not self._request.Test(self._status):
            return False
        source, count = self._status.Get_source(), self._status.Get_count(self._byte)
        if status is not None:
            status.Set_source(source)
        large = announced(self._memory[0], count)
        check_size(source, count if large is None else large, self._size)
        return True


class MpiBackend:
    """A backend with the methods of backend.SingleProcess for an MPI communicator."""

    device = "cpu"
    aborted, aborted_at = "", 0.0  # the text of the error for operations that have not ended, and since when

    def __init__(self, comm, rank: int, ranks, timeout, signatures):
        self.mpi = mpi_world.job.mpi
        self.comm, self.rank, self.ranks, self.timeout = comm, rank, list(ranks), timeout
        self.size = len(self.ranks)
        self._rooms = Rooms()
        self.sequence, self.position = 0, None
        self._signatures = signatures
        self._largest_tag = comm.Get_attr(self.mpi.TAG_UB) or 32767

    def _work(
        self, name, tensor, request, result, finish=None, keep=None, source=-1, agree=None, early=False
    ) -> Work:
        """Returns the Work of a request that was started.

        agree: what the ranks must agree about. Messages have none; they are not counted, because they involve only two
        ranks. early: whether some ranks can end the operation before others have begun it.
        """
        comparison = None
        if agree is not None:
            self.sequence += 1
            dtype = None if tensor is None else tensor.dtype
            start = self._signatures.start_rooted if early else self._signatures.start
            try:
                comparison = start(name, self.sequence, dtype, agree)
            except DistBackendError:
                abandon(request, keep, tensor, result)
                raise
        work = MpiWork(self, name, tensor, request, result, finish, keep, source, comparison)
        self.position = work
        return work

    @property
    def name(self) -> str:
        """The name of the group."""
        return self._signatures.name

    @name.setter
    def name(self, name: str) -> None:
        self._signatures.name = name

    @property
    def unconfirmed(self) -> int:
        """The number of the last operation that this rank may have finished before others have started it, or 0."""
        return self._signatures.unconfirmed

    # -- reductions ----------------------------------------------------------------------------------------
    def allreduce(self, tensor, op) -> Work:
        """tensor = reduction over the group."""
        if self.size <= _FEW and _summed_here(tensor, op):
            if self.size == 2 and op == ReduceOp.SUM:
                return self._allreduce_of_two(tensor)
            return self._allreduce_of_parts(tensor, op)
        kind = mpi_op(self.mpi, op, tensor.dtype)
        data = reducible(tensor, op)
        request = self.comm.Iallreduce(self.mpi.IN_PLACE, typed(self.mpi, data), kind)
        agree = Agreement(op, tensor.numel())
        return self._work(
            "ALLREDUCE", tensor, request, [tensor], self._settler(data, tensor, op), agree=agree
        )

    def _allreduce_of_parts(self, tensor, op):
        """Gathers the tensors of all ranks in 16 bits and sums them locally, which sends fewer bytes than float32."""
        data = tensor.data.contiguous()
        parts, kept = self._rooms.take(data, self.size, data.numel())
        receive = [memory(self.mpi, parts)[0], data.nbytes, self.mpi.BYTE]
        request = self.comm.Iallgather(memory(self.mpi, data), receive)
        finish, agree = self._adder(parts, kept, tensor, op), Agreement(op, tensor.numel())
        return self._work("ALLREDUCE", tensor, request, [tensor], finish, keep=data, agree=agree)

    def _allreduce_of_two(self, tensor):
        """All-reduce of two ranks: they exchange tensors, and each adds the other's in float32 and rounds once."""
        data = tensor.data.contiguous()
        other, kept = self._rooms.take(data, 1, data.numel())
        counts = [0 if rank == self.rank else data.nbytes for rank in range(2)]
        request = self.comm.Ialltoallv(
            [memory(self.mpi, data)[0], (counts, [0, 0]), self.mpi.BYTE],
            [memory(self.mpi, other)[0], (counts, [0, 0]), self.mpi.BYTE],
        )

        def finish():
            add(data, other[0])
            if not same_memory(data, tensor):
                write(tensor, data)
            self._rooms.give(kept)

        agree = Agreement(ReduceOp.SUM, tensor.numel())
        return self._work("ALLREDUCE", tensor, request, [tensor], finish, keep=data, agree=agree)

    def _reduce_scatter_of_parts(self, output, tensor, op, counts, name):
        data, own = tensor.data.contiguous(), output.numel()
        parts, kept = self._rooms.take(data, self.size, own)
        sent, received = [n * data.element_size() for n in counts], [own * data.element_size()] * self.size
        request = self._exchange(parts, data, received, sent)
        finish, agree = self._adder(parts, kept, output, op), _same_counts(op, counts)
        return self._work(name, output, request, [output], finish, keep=data, agree=agree)

    def _adder(self, parts, kept, target, op):
        def finish():
            sum_parts(parts, target, op)
            self._rooms.give(kept)

        return finish

    def _settler(self, data, tensor, op):
        if op != ReduceOp.AVG and same_memory(data, tensor):
            return None
        return lambda: settle(data, tensor, op, self.size)

    def reduce(self, tensor, root: int, op) -> Work:
        """tensor on `root` = reduction over the group."""
        kind = mpi_op(self.mpi, op, tensor.dtype)
        data = reducible(tensor, op)
        agree = Agreement(op, tensor.numel(), root=root)
        if self.rank == root:
            request = self.comm.Ireduce(self.mpi.IN_PLACE, typed(self.mpi, data), kind, root)
            finish = self._settler(data, tensor, op)
            return self._work("REDUCE", tensor, request, [tensor], finish, agree=agree, early=True)
        request = self.comm.Ireduce(typed(self.mpi, data), None, kind, root)
        return self._work("REDUCE", tensor, request, [tensor], keep=data, agree=agree, early=True)

    def reduce_scatter(self, output, inputs, op) -> Work:
        """output = inputs[this rank], reduced over the group."""
        return self._reduce_scatter(output, packed(inputs), op, [t.numel() for t in inputs], "REDUCE_SCATTER")

    def reduce_scatter_into(self, output, tensor, op) -> Work:
        """output = this rank's part of the reduction of `tensor` over the group."""
        return self._reduce_scatter(output, tensor, op, [output.numel()] * self.size, "_REDUCE_SCATTER_BASE")

    def _reduce_scatter(self, output, tensor, op, counts, name):
        if _summed_here(tensor, op):
            return self._reduce_scatter_of_parts(output, tensor, op, counts, name)
        kind = mpi_op(self.mpi, op, tensor.dtype)
        data = reducible(tensor, op)
        usable = output.is_contiguous() and output.dtype == data.dtype and not _overlap(output, data)
        target = output.data if usable else data.new_empty(output.numel())
        request = self.comm.Ireduce_scatter(typed(self.mpi, data), typed(self.mpi, target), counts, kind)
        finish, agree = self._settler(target, output, op), _same_counts(op, counts)
        return self._work(name, output, request, [output], finish, keep=(data, target), agree=agree)

    # -- copies --------------------------------------------------------------------------------------------
    def broadcast(self, tensor, root: int) -> Work:
        """tensor = the tensor of `root`."""
        data, agree = tensor.data.contiguous(), Agreement(same=tensor.numel(), root=root)
        request = self.comm.Ibcast(memory(self.mpi, data), root)
        copied = self.rank != root and not same_memory(data, tensor)
        finish = (lambda: write(tensor, data)) if copied else None
        return self._work("BROADCAST", tensor, request, [tensor], finish, keep=data, agree=agree, early=True)

    def allgather(self, outputs, tensor) -> Work:
        """outputs[i] = the tensor of process i (sizes may differ)."""
        flat, unpack = room(outputs)
        counts = [t.nbytes for t in outputs]
        return self._allgather(flat, tensor, counts, outputs, unpack, "ALLGATHER")

    def allgather_into(self, output, tensor) -> Work:
        """output = the tensors of all processes, concatenated."""
        flat, unpack = room([output])
        return self._allgather(flat, tensor, [tensor.nbytes] * self.size, [output], unpack, "_ALLGATHER_BASE")

    def _allgather(self, flat, tensor, counts, outputs, unpack, name):
        data = tensor.data.contiguous()
        _check_own("all_gather", data.nbytes, counts[self.rank])
        agree = Agreement(sent=[data.nbytes] * self.size, received=counts)
        start = flat.data_ptr() + sum(counts[: self.rank])
        send = self.mpi.IN_PLACE if data.data_ptr() == start and data.nbytes else memory(self.mpi, data)
        if send is not self.mpi.IN_PLACE and _overlap(data, flat):
            data = data.clone()
            send = memory(self.mpi, data)
        receive = memory(self.mpi, flat)
        if len(set(counts)) == 1:
            request = self.comm.Iallgather(send, [receive[0], counts[0], self.mpi.BYTE])
        else:
            request = self.comm.Iallgatherv(send, [receive[0], (counts, _offsets(counts)), self.mpi.BYTE])
        return self._work(name, tensor, request, outputs, unpack, keep=(data, flat), agree=agree)

    def gather(self, outputs, tensor, root: int) -> Work:
        """On `root`: outputs[i] = the tensor of process i."""
        data = tensor.data.contiguous()
        if self.rank != root:
            request = self.comm.Igatherv(memory(self.mpi, data), None, root)
            agree = Agreement(sent=[data.nbytes], root=root)
            return self._work("GATHER", tensor, request, [tensor], keep=data, agree=agree, early=True)
        flat, unpack = room(outputs)
        if _overlap(data, flat):
            data = data.clone()
        counts = [t.nbytes for t in outputs]
        _check_own("gather", data.nbytes, counts[root])
        receive = [memory(self.mpi, flat)[0], (counts, _offsets(counts)), self.mpi.BYTE]
        request = self.comm.Igatherv(memory(self.mpi, data), receive, root)
        agree, keep = Agreement(received=counts, root=root), (data, flat)
        return self._work("GATHER", tensor, request, outputs, unpack, keep=keep, agree=agree, early=True)

    def scatter(self, output, inputs, root: int) -> Work:
        """output = root's inputs[this rank]."""
        target, unpack = room([output])
        if self.rank != root:
            request = self.comm.Iscatterv(None, memory(self.mpi, target), root)
            agree = Agreement(received=[target.nbytes], root=root)
            return self._work(
                "SCATTER", output, request, [output], unpack, keep=target, agree=agree, early=True
            )
        flat, counts = packed(inputs), [t.nbytes for t in inputs]
        _check_own("scatter", counts[root], target.nbytes)
        if _overlap(flat, target):
            flat = flat.clone()
        send = [memory(self.mpi, flat)[0], (counts, _offsets(counts)), self.mpi.BYTE]
        request = self.comm.Iscatterv(send, memory(self.mpi, target), root)
        agree, keep = Agreement(sent=counts, root=root), (flat, target)
        return self._work("SCATTER", output, request, [output], unpack, keep=keep, agree=agree, early=True)

    def alltoall(self, outputs, inputs) -> Work:
        """outputs[i] = process i's inputs[this rank]."""
        flat, unpack = room(outputs)
        data = packed(inputs)
        return self._alltoall(
            flat, data, [t.nbytes for t in outputs], [t.nbytes for t in inputs], outputs, unpack
        )

    def alltoall_single(self, output, tensor, output_sizes, input_sizes) -> Work:
        """The same as alltoall, with parts of one tensor along dimension 0."""
        flat, unpack = room([output])
        data = tensor.data.contiguous()
        counts = [
            _part_bytes(t, sizes, self.size) for t, sizes in ((output, output_sizes), (tensor, input_sizes))
        ]
        return self._alltoall(flat, data, *counts, [output], unpack)

    def _alltoall(self, flat, data, received, sent, outputs, unpack):
        if _overlap(flat, data):
            data = data.clone()
        request = self._exchange(flat, data, received, sent)
        agree = Agreement(sent=sent, received=received)
        return self._work("ALLTOALL", data, request, outputs, unpack, keep=(data, flat), agree=agree)

    def _exchange(self, flat, data, received, sent):
        """Starts an exchange of bytes and returns its request. This rank's own part is copied immediately."""
        places, targets = _offsets(sent), _offsets(received)
        done = set()
        if (
            sent[self.rank] == received[self.rank] > _SMALL
        ):  # MPI would send it to itself in pieces, which takes 400 ms for 8 MB instead of 3 ms
            _copy_bytes(flat, targets[self.rank], data, places[self.rank], sent[self.rank])
            done.add(self.rank)
        rest = [[0 if r in done else n for r, n in enumerate(counts)] for counts in (sent, received)]
        return self.comm.Ialltoallv(
            [memory(self.mpi, data)[0], (rest[0], places), self.mpi.BYTE],
            [memory(self.mpi, flat)[0], (rest[1], targets), self.mpi.BYTE],
        )

    # -- messages ------------------------------------------------------------------------------------------
    def send(self, tensor, dst: int, tag: int, own: bool = True) -> Work:
        """Sends a copy of the tensor (with `own`), because the tensor may be overwritten or freed before it is sent."""
        data = tensor.data
        data = data.clone() if own and data.is_contiguous() else data.contiguous()
        request = self._send(data, dst, tag % self._largest_tag)
        return self._work(f"SEND to {dst}", tensor, request, [tensor], keep=data)

    def recv(self, tensor, src: int, tag: int) -> Work:
        """Receives into `tensor`. src -1 means any rank."""
        target, unpack = room([tensor])
        source = self.mpi.ANY_SOURCE if src < 0 else src
        request = self._receive(target, source, tag % self._largest_tag)
        return self._work(f"RECV from {src}", tensor, request, [tensor], unpack, keep=target, source=src)

    def _send(self, data, dst: int, tag: int):
        return self.comm.Isend(memory(self.mpi, data), dst, tag)

    def _receive(self, target, source: int, tag: int):
        return _Receive(self.mpi, self.comm, target, source, tag)

    def barrier(self) -> Work:
        """Wait for all processes."""
        return self._work("BARRIER", None, self.comm.Ibarrier(), [], agree=Agreement())

    def abort(self, text: str, when: float) -> None:
        """Lets the operations that have not ended fail. text: of the error, with {} for the operation."""
        self.aborted_at, self.aborted = when, text

    def ended(self, ranks) -> list:
        """Those of the ranks whose processes are known to have terminated."""
        return mpi_world.job.dead(ranks)

    def close(self) -> None:
        """Releases the resources of the group, which is destroyed."""
        self._signatures.close()
        self.comm.Free()


def _summed_here(tensor, op) -> bool:
    """True if the ranks exchange 16-bit values and sum them in float32 locally."""
    return tensor.dtype.name in ("bfloat16", "float16") and op in (ReduceOp.SUM, ReduceOp.AVG)


def _same_counts(op, counts) -> Agreement:
    """All ranks have the same numbers of elements for each other."""
    return Agreement(op, _C.signature_counts(counts))


def _check_own(what: str, sent: int, received: int) -> None:
    """ValueError unless what this rank sends to itself fits."""
    if sent != received:
        raise ValueError(
            f"{what}: the tensor of this rank has {sent} bytes, but the output for it has {received}"
        )


def _copy_bytes(target, target_start: int, source, source_start: int, count: int) -> None:
    """Copies ``count`` bytes from one contiguous tensor to another."""
    ctypes.memmove(target.data_ptr() + target_start, source.data_ptr() + source_start, count)


def _offsets(counts) -> list:
    places = [0]
    for count in counts[:-1]:
        places.append(places[-1] + count)
    return places


def _part_bytes(tensor, sizes, parts) -> list:
    if not sizes:
        return [tensor.nbytes // parts] * parts
    row = tensor.nbytes // tensor.size(0) if tensor.size(0) else 0
    return [int(size) * row for size in sizes]


def _overlap(one, other) -> bool:
    begin, start = one.data_ptr(), other.data_ptr()
    return begin < start + other.nbytes and start < begin + one.nbytes
