"""Signatures: the ranks of a group tell each other which collective they run, and on how much data.

MPI moves what it is given: ranks that disagree about an operation, its dtype or its size get numbers that mean nothing,
and no error. So a signature of 48 bytes goes along with each operation, and a rank compares it before it believes a result.

An operation that no rank can end before all have begun it sends the signatures to all, so a difference is an error on
every rank. Small operations with a root are not held up by this. Their signatures go the way of the data: from the root of
a broadcast or scatter, to that of a reduce or gather. The others learn of a difference by the next operation of the first
kind, because each rank counts what it has begun. A rank that waits for more than a second also compares what it waits for
with what others wait for, through the job's store (see `_Board`).
"""

import contextlib
import json
import time
import zlib
from typing import NamedTuple

from .._host.native import load
from .errors import DistBackendError, DistError
from .reduce_op import ReduceOp

_C = load()  # csrc/distributed/signature.h has the layout of a signature, and compares

_CALLS = {
    "ALLREDUCE": "all_reduce",
    "REDUCE_SCATTER": "reduce_scatter",
    "ALLGATHER": "all_gather",
    "ALLTOALL": "all_to_all",
    "BARRIER": "barrier",
    "REDUCE": "reduce",
    "BROADCAST": "broadcast",
    "GATHER": "gather",
    "SCATTER": "scatter",
}
_KINDS = {name: name for name in _CALLS} | {
    "_REDUCE_SCATTER_BASE": "REDUCE_SCATTER",
    "_ALLGATHER_BASE": "ALLGATHER",
}
_FROM_ROOT = ("BROADCAST", "SCATTER")
_EXPLAIN = 1.0  # seconds for the signatures to explain an error of MPI
_SOON, _SELDOM = (
    1.0,
    60.0,
)  # seconds of waiting until the first look at what others wait for, and at most between two


class Agreement:
    """The facts that must agree: a reduction and a number that are the same on all ranks, or the bytes that each pair exchanges.

    sent[i]: to rank i, received[i]: expected from rank i. What all send and what all expect is compared by two sums of
    hashes, so that a signature has one size, however many ranks there are. With a root, only that rank lists the bytes of
    all ranks, and the others list their own.
    """

    def __init__(self, op=None, same: int = 0, sent=(), received=(), root: int = -1):
        self.op, self.same, self.sent, self.received, self.root = op, same, sent, received, root


class _Fields(NamedTuple):
    """What a signature says, for messages."""

    kind: str
    dtype: object
    reduction: int
    sequence: int
    root: int
    same: int


class Signatures:
    """The signatures of one group. They use a communicator `comm` of their own, so other messages cannot match them."""

    def __init__(self, mpi, comm, ranks, store):
        self._mpi, self._comm, self.ranks = mpi, comm, ranks
        self.rank, self._size = comm.Get_rank(), len(ranks)
        self.ledger = _C.ledger_open(self.rank)
        self._broken = ""
        self.mpi_error = mpi.Exception
        self._largest_tag = comm.Get_attr(mpi.TAG_UB) or 32767
        self._board = _Board(store, ranks)

    @property
    def name(self) -> str:
        """The name of the group, which it gets later."""
        return self._board.name

    @name.setter
    def name(self, name: str) -> None:
        self._board.name = name

    @property
    def unconfirmed(self) -> int:
        """Number of the last operation that this rank may have ended before others have begun it, or 0."""
        return _C.ledger_unconfirmed(self.ledger)

    def start(self, name: str, sequence: int, dtype, agreement: Agreement) -> "_Comparison":
        """Send the own signature to all and ask for theirs."""
        self.check_whole(name)
        sent = _C.signature_flow_to_all(self.rank, agreement.sent)
        received = _C.signature_flow_from_all(self.rank, agreement.received)
        own = self._sign(name, sequence, dtype, agreement, False, sent, received)
        room, byte = bytearray(len(own) * self._size), self._mpi.BYTE
        return _Comparison(self, own, room, self._comm.Iallgather([own, byte], [room, byte]))

    def start_rooted(self, name: str, sequence: int, dtype, agreement: Agreement) -> "_RootedComparison":
        """Send the signature the way of the data: from the root or to it. No rank is held up by it."""
        self.check_whole(name)
        root, sent = agreement.root, 0
        at_root, byte = self.rank == root, self._mpi.BYTE
        if agreement.sent and not at_root:
            sent = _C.signature_flow(self.rank, root, agreement.sent[0])
        own = self._sign(name, sequence, dtype, agreement, True, sent, 0)
        others = [rank for rank in range(self._size) if rank != self.rank] if at_root else [root]
        # messages are sent, because MPI matches collectives by their order, which may differ between the ranks
        tag = sequence % self._largest_tag
        if at_root != (name in _FROM_ROOT):  # this rank receives
            rooms = {rank: bytearray(len(own)) for rank in others}
            requests = [self._comm.Irecv([room, byte], rank, tag) for rank, room in rooms.items()]
            return _RootedComparison(self, own, agreement, rooms, requests)
        each = [own] * len(others)
        if at_root and agreement.sent:
            flows = [_C.signature_flow(root, rank, agreement.sent[rank]) for rank in others]
            each = [_C.signature_sending(own, flow) for flow in flows]
        requests = [self._comm.Isend([one, byte], rank, tag) for rank, one in zip(others, each, strict=True)]
        return _RootedComparison(self, own, agreement, {}, requests, each)

    def check_whole(self, name: str) -> None:
        """DistBackendError if the group has failed."""
        if self._broken:
            raise DistBackendError(
                f"{_CALLS[_KINDS[name]]}: an earlier collective of this process group has failed. {self._broken}"
            )

    def _sign(self, name, sequence, dtype, agreement, early, sent, received) -> bytes:
        reduction = None if agreement.op is None else int(agreement.op)
        facts = (_KINDS[name], dtype, reduction, agreement.root, agreement.same, sent, received)
        return _C.ledger_sign(self.ledger, early, sequence, *facts)

    def refuse(self, own: bytes, other: bytes, rank: int) -> None:
        """Raise DistBackendError, because another rank runs another operation, or the parts of all have other sizes."""
        ours = _Fields(*_C.signature_fields(own))
        if rank == self._size:
            self.fail(
                "The ranks do not agree about the sizes of the parts "
                f"that they send to each other in {ours.kind}(SeqNum={ours.sequence})."
            )
        theirs = _Fields(*_C.signature_fields(other))
        self.fail(
            f"Rank {self.ranks[self.rank]} is running collective: {_words(ours)}, "
            f"but Rank {self.ranks[rank]} is running collective: {_words(theirs)}."
            f" Rank {self.ranks[rank]} runs {_CALLS[theirs.kind]} of {_size(theirs)}.{_hint(ours, theirs)}"
        )

    def compare(self, own: bytes, room: bytearray) -> None:
        """DistBackendError if the signatures of all ranks do not agree; it says what each rank runs."""
        rank = _C.signatures_disagreeing(own, room)
        if rank >= 0:
            self.refuse(own, bytes(room[len(own) * rank :][: len(own)]), rank)

    def compare_one(self, own: bytes, other: bytes, rank: int) -> None:
        """DistBackendError if another rank runs another operation."""
        if _C.signatures_disagreeing(own, other) == 0:
            self.refuse(own, other, rank)

    def fail(self, what: str) -> None:
        """Raise DistBackendError, and tell it to those who wait. The group cannot be used any more."""
        self._broken = f"Detected mismatch between collectives on ranks. {what}"
        self._board.tell(self.rank, {"mismatch": what})
        raise DistBackendError(self._broken)

    def hear(self) -> None:
        """DistBackendError if another rank has found a mismatch."""
        for _, found in self._board.others(self.rank):
            if "mismatch" in found:
                self.fail(found["mismatch"])

    def look(self, own: bytes) -> None:
        """Tell the others what this rank waits for. DistBackendError if one of them waits for something else."""
        own = _C.signature_alone(
            own
        )  # a rank that waits has not got the signatures that have the hash of what was before
        self._board.tell(self.rank, {"waits": own.hex()})
        self.hear()
        sequence = _Fields(*_C.signature_fields(own)).sequence
        for rank, found in self._board.others(self.rank):
            if "waits" in found:
                other = bytes.fromhex(found["waits"])
                if _Fields(*_C.signature_fields(other)).sequence == sequence:
                    self.compare_one(own, other, rank)

    def forget(self) -> None:
        """This rank does not wait any more."""
        if not self._broken:
            self._board.forget(self.rank)

    def withdraw(self) -> None:
        """Remove what this rank has told the others, because the group is made anew."""
        self._board.forget(self.rank)

    def close(self) -> None:
        """Free the communicator, because the group is destroyed."""
        self._comm.Free()


class Waiting:
    """An operation that waits for other ranks, as far as they may disagree."""

    def __init__(self, signatures):
        self._signatures, self._next = signatures, None

    def own(self) -> bytes:
        """Return the signature of this rank."""
        raise NotImplementedError

    def Test(self) -> bool:  # noqa: N802  as MPI's
        """Return whether the signatures have arrived. DistBackendError if they do not agree."""
        raise NotImplementedError

    def look(self, waited: float) -> None:
        """After some waiting, compare with what the others wait for; the longer it takes, the more seldom."""
        if self._next is None:
            self._next = self._pause = _SOON
        if waited >= self._next:
            self._next, self._pause = waited + self._pause, min(2 * self._pause, _SELDOM)
            self._signatures.look(self.own())

    def forget(self) -> None:
        """The operation has ended."""
        self._signatures.forget()

    def explain(self) -> None:
        """MPI has refused the operation: raise what the signatures or other ranks say, if they soon say anything."""
        end, pause = time.monotonic() + _EXPLAIN, 0.001
        while time.monotonic() < end:
            with contextlib.suppress(
                self._signatures.mpi_error
            ):  # any call of MPI may report the failure again
                self.Test()
            self._signatures.hear()
            time.sleep(pause)
            pause = min(2 * pause, 0.05)


class _Comparison(Waiting):
    """Signatures on their way to all ranks."""

    def __init__(self, signatures, own, room, request):
        super().__init__(signatures)
        self._own, self._room, self._request = own, room, request

    def own(self) -> bytes:
        return self._own

    def Test(self) -> bool:  # noqa: N802  as MPI's
        if not self._request.Test():
            return False
        self._signatures.compare(self._own, self._room)
        return True


class _RootedComparison(_Comparison):
    """Signatures on their way from a root or to it. The ranks that send data receive none and compare nothing."""

    def __init__(self, signatures, own, agreement, rooms, requests, sent=()):
        super().__init__(signatures, own, rooms, requests)
        self._agreement, self._sent = agreement, sent  # MPI reads what is sent

    def Test(self) -> bool:  # noqa: N802  as MPI's
        if not all(request.Test() for request in self._request):
            return False
        ours, root = self._signatures, self._agreement.root
        expected = self._agreement.received
        for rank, room in self._room.items():
            ours.compare_one(self._own, bytes(room), rank)
            if expected:  # only the root lists the bytes of all ranks
                count = expected[rank] if ours.rank == root else expected[0]
                if _C.signature_sent(bytes(room)) != _C.signature_flow(rank, ours.rank, count):
                    ours.refuse(self._own, b"", len(ours.ranks))
        return True


class _Board:
    """What the ranks of a group wait for, and which of them have found a mismatch, in the job's store.

    Ranks can disagree such that each waits for the other: about the root, or about whether a tensor is large and goes
    through shared memory. No signature arrives then.
    """

    def __init__(self, store, ranks):
        self._store, self.name, self.ranks = store, "", ranks
        self._told = False

    def _key(self, rank: int) -> str:
        return f"waiting/{self.name}/{zlib.crc32(repr(self.ranks).encode())}/{rank}"

    def tell(self, rank: int, what) -> None:
        """Write down what this rank waits for, or the mismatch that it has found."""
        with _the_store_may_have_gone():
            self._store.set(self._key(rank), json.dumps(what))
            self._told = True

    def forget(self, rank: int) -> None:
        """This rank does not wait any more."""
        if self._told:
            self._told = False
            with _the_store_may_have_gone():
                self._store.delete_key(self._key(rank))

    def others(self, rank: int):
        """Yields (rank, what it waits for or a mismatch as a string) for the other ranks that have told something."""
        with _the_store_may_have_gone():
            for other in range(len(self.ranks)):
                if other != rank and self._store.check([self._key(other)]):
                    yield other, json.loads(self._store.get(self._key(other)))


@contextlib.contextmanager
def _the_store_may_have_gone():
    """The process that keeps the store may have ended. The operation's own timeout still applies."""
    try:
        yield
    except DistBackendError:
        raise
    except (DistError, OSError):
        return


def _words(one: _Fields) -> str:
    parts = [f"SequenceNumber={one.sequence}", f"OpType={one.kind}"]
    parts += [f"Root={one.root}"] if one.root >= 0 else []
    parts += [f"Numel={one.same}"] if _counts(one) else []
    parts += [f"TensorDtypes={one.dtype.name}"] if one.dtype is not None else []
    parts += [f"ReduceOp={list(ReduceOp.RedOpType)[one.reduction].name}"] if one.reduction >= 0 else []
    return f"CollectiveFingerPrint({', '.join(parts)})"


def _counts(one: _Fields) -> bool:
    """Whether its number that is the same everywhere is a number of elements."""
    return one.kind in ("ALLREDUCE", "REDUCE", "BROADCAST")


def _size(one: _Fields) -> str:
    return f"{one.same} elements" if _counts(one) else "its tensors"


def _hint(one: _Fields, other: _Fields) -> str:
    """What differs where the words are the same."""
    if one == other:
        return " The operations with a root before it, such as broadcast, differ in order, root or size."
    return " The sizes of the tensors differ." if one[:5] == other[:5] else ""
