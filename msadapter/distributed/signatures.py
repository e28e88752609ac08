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
import functools
import json
import struct
import time
import zlib
from typing import NamedTuple

from .._values.dtype import ALL
from .errors import DistBackendError, DistError
from .reduce_op import ReduceOp

_LAYOUT = struct.Struct("<BBBxIIxxxxQQQQ")
_MASK = (1 << 64) - 1
_NO_ROOT = (1 << 32) - 1
_DTYPES = {name: number for number, name in enumerate(ALL, 1)}
_CALLS = (
    "", "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier", "reduce", "broadcast", "gather", "scatter"
)  # fmt: skip
_KINDS = (
    "", "ALLREDUCE", "REDUCE_SCATTER", "ALLGATHER", "ALLTOALL", "BARRIER", "REDUCE", "BROADCAST", "GATHER", "SCATTER"
)  # fmt: skip
_NUMBERS = {name: number for number, name in enumerate(_KINDS) if name} | {
    "_REDUCE_SCATTER_BASE": 2,
    "_ALLGATHER_BASE": 3,
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


class _Signature(NamedTuple):
    kind: int
    dtype: int
    reduction: int
    sequence: int
    root: int
    same: int
    rooted: int  # a hash of the operations with a root before this one
    sent: int
    received: int

    @property
    def equal(self):
        """The part that must be equal on all ranks."""
        return self[:7]


class Signatures:
    """The signatures of one group. They use a communicator `comm` of their own, so other messages cannot match them."""

    def __init__(self, mpi, comm, ranks, store, name):
        """name: a function that returns the name of the group, which is not known yet."""
        self._mpi, self._comm, self.ranks = mpi, comm, ranks
        self.rank, self._size = comm.Get_rank(), len(ranks)
        self._rooted, self._broken = 0, ""
        self.mpi_error = mpi.Exception
        self._largest_tag = comm.Get_attr(mpi.TAG_UB) or 32767
        self._board = _Board(store, name, ranks)
        self.unconfirmed = (
            0  # number of the last operation that this rank may have ended before others have begun it
        )

    def start(self, name: str, sequence: int, dtype, agreement: Agreement) -> "_Comparison":
        """Send the own signature to all and ask for theirs."""
        self._check_whole(name)
        own = self._signature(name, sequence, dtype, agreement, self._rooted)
        self._rooted, self.unconfirmed = 0, 0
        sent, byte = _LAYOUT.pack(*own), self._mpi.BYTE
        room = bytearray(len(sent) * self._size)
        return _Comparison(self, own, sent, room, self._comm.Iallgather([sent, byte], [room, byte]))

    def start_rooted(self, name: str, sequence: int, dtype, agreement: Agreement) -> "_RootedComparison":
        """Send the signature the way of the data: from the root or to it. No rank is held up by it."""
        self._check_whole(name)
        own, root = self._signature(name, sequence, dtype, agreement, 0), agreement.root
        what = (own.kind, sequence, root, own.dtype, own.reduction, own.same)
        self._rooted = hash((self._rooted, *what)) & _MASK
        at_root, byte = self.rank == root, self._mpi.BYTE
        others = [rank for rank in range(self._size) if rank != self.rank] if at_root else [root]
        # messages are sent, because MPI matches collectives by their order, which may differ between the ranks
        tag = sequence % self._largest_tag
        if at_root != (name in _FROM_ROOT):  # this rank receives
            rooms = {rank: bytearray(_LAYOUT.size) for rank in others}
            requests = [self._comm.Irecv([room, byte], rank, tag) for rank, room in rooms.items()]
            return _RootedComparison(self, own, agreement, rooms, requests)
        self.unconfirmed = sequence
        if at_root and agreement.sent:
            sizes = [own._replace(sent=_mixed(root, rank, agreement.sent[rank])) for rank in others]
            sent = [_LAYOUT.pack(*one) for one in sizes]
        else:
            sent = [_LAYOUT.pack(*own)] * len(others)
        requests = [self._comm.Isend([one, byte], rank, tag) for rank, one in zip(others, sent, strict=True)]
        return _RootedComparison(self, own, agreement, {}, requests, sent)

    def _check_whole(self, name: str) -> None:
        if self._broken:
            raise DistBackendError(
                f"{_CALLS[_NUMBERS[name]]}: an earlier collective of this process group has failed. {self._broken}"
            )

    def _signature(self, name, sequence, dtype, agreement, rooted) -> _Signature:
        here, sent, received = self.rank, 0, 0
        if agreement.root < 0:
            sent = _flow(here, tuple(agreement.sent), True)
            received = _flow(here, tuple(agreement.received), False)
        elif agreement.sent and here != agreement.root:
            sent = _mixed(here, agreement.root, agreement.sent[0]) & _MASK
        return _Signature(
            _NUMBERS[name],
            0 if dtype is None else _DTYPES[dtype.name],
            0 if agreement.op is None else 1 + int(agreement.op),
            sequence & 0xFFFFFFFF,
            _NO_ROOT if agreement.root < 0 else agreement.root,
            agreement.same & _MASK,
            rooted,
            sent,
            received,
        )

    def compare(self, own: _Signature, sent: bytes, room: bytearray) -> None:
        """DistBackendError if the signatures of all ranks do not agree; it says what each rank runs."""
        if not (own.sent or own.received) and room == sent * self._size:
            return
        found = [_Signature(*one) for one in _LAYOUT.iter_unpack(room)]
        for rank, other in enumerate(found):
            self.compare_one(own, other, rank)
        if (sum(one.sent for one in found) - sum(one.received for one in found)) & _MASK:
            self.fail(_about_parts(own))

    def compare_one(self, own: _Signature, other: _Signature, rank: int) -> None:
        """DistBackendError if another rank runs another operation."""
        if own.equal != other.equal:
            self.fail(
                f"Rank {self.ranks[self.rank]} is running collective: {_words(own)}, "
                f"but Rank {self.ranks[rank]} is running collective: {_words(other)}."
                f" Rank {self.ranks[rank]} runs {_CALLS[other.kind]} of {_size(other)}.{_hint(own, other)}"
            )

    def fail(self, what: str) -> None:
        """Raise DistBackendError, and tell it to those who wait. The group cannot be used any more."""
        self._broken = f"Detected mismatch between collectives on ranks. {what}"
        self._board.tell(self.rank, what)
        raise DistBackendError(self._broken)

    def hear(self) -> None:
        """DistBackendError if another rank has found a mismatch."""
        for _, found in self._board.others(self.rank):
            if isinstance(found, str):
                self.fail(found)

    def look(self, own: _Signature) -> None:
        """Tell the others what this rank waits for. DistBackendError if one of them waits for something else."""
        self._board.tell(self.rank, own)
        self.hear()
        for rank, found in self._board.others(self.rank):
            if isinstance(found, str):
                continue
            other = _Signature(*found)
            if other.sequence == own.sequence:
                # the hash of what was before is in the signatures of those operations alone that send them to all
                self.compare_one(own, other._replace(rooted=own.rooted), rank)

    def forget(self) -> None:
        """This rank does not wait any more."""
        if not self._broken:
            self._board.forget(self.rank)

    def close(self) -> None:
        """Free the communicator, because the group is destroyed."""
        self._comm.Free()


class _Comparison:
    """Signatures on their way to all ranks."""

    def __init__(self, signatures, own, sent, room, request):
        self._signatures, self._own = signatures, own
        self._sent, self._room, self._request = sent, room, request
        self._next, self._pause = _SOON, _SOON

    def Test(self) -> bool:  # noqa: N802  as MPI's
        """Return whether all signatures have arrived. DistBackendError if they do not agree."""
        if not self._request.Test():
            return False
        self._signatures.compare(self._own, self._sent, self._room)
        return True

    def look(self, waited: float) -> None:
        """After some waiting, compare with what the others wait for; the longer it takes, the more seldom."""
        if waited >= self._next:
            self._next, self._pause = waited + self._pause, min(2 * self._pause, _SELDOM)
            self._signatures.look(self._own)

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


class _RootedComparison(_Comparison):
    """Signatures on their way from a root or to it. The ranks that send data receive none and compare nothing."""

    def __init__(self, signatures, own, agreement, rooms, requests, sent=()):
        super().__init__(signatures, own, sent, rooms, requests)
        self._agreement = agreement

    def Test(self) -> bool:  # noqa: N802  as MPI's
        """Whether all have come and agree; DistBackendError if they do not agree."""
        if not all(request.Test() for request in self._request):
            return False
        ours, own, root = self._signatures, self._own, self._agreement.root
        expected = self._agreement.received
        for rank, room in self._room.items():
            other = _Signature(*_LAYOUT.unpack(room))
            ours.compare_one(own, other, rank)
            if expected:  # only the root lists the bytes of all ranks
                count = expected[rank] if ours.rank == root else expected[0]
                if other.sent != _mixed(rank, ours.rank, count) & _MASK:
                    ours.fail(_about_parts(own))
        return True


class _Board:
    """What the ranks of a group wait for, and which of them have found a mismatch, in the job's store.

    Ranks can disagree such that each waits for the other: about the root, or about whether a tensor is large and goes
    through shared memory. No signature arrives then.
    """

    def __init__(self, store, name, ranks):
        self._store, self._name, self.ranks = store, name, ranks
        self._told = False

    def _key(self, rank: int) -> str:
        return f"waiting/{self._name()}/{zlib.crc32(repr(self.ranks).encode())}/{rank}"

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


@functools.lru_cache(maxsize=1024)  # a program repeats the same sizes
def _flow(here: int, counts: tuple, sends: bool) -> int:
    """A number for what a rank sends to all ranks, or for what it expects from them."""
    flows = ((here, rank, count) if sends else (rank, here, count) for rank, count in enumerate(counts))
    return sum(_mixed(*flow) for flow in flows) & _MASK


def _mixed(sender: int, receiver: int, count: int) -> int:
    """A number for the bytes that one rank sends to another, such that the sums of different exchanges differ."""
    return pow(count << 40 | sender << 20 | receiver, 5, (1 << 61) - 1)


def _about_parts(own: _Signature) -> str:
    return (
        "The ranks do not agree about the sizes of the parts "
        f"that they send to each other in {_KINDS[own.kind]}(SeqNum={own.sequence})."
    )


def _words(one: _Signature) -> str:
    dtype = next((name for name, number in _DTYPES.items() if number == one.dtype), None)
    parts = [f"SequenceNumber={one.sequence}", f"OpType={_KINDS[one.kind]}"]
    parts += [f"Root={one.root}"] if one.root != _NO_ROOT else []
    parts += [f"Numel={one.same}"] if _counts(one) else []
    parts += [f"TensorDtypes={dtype}"] if dtype else []
    parts += [f"ReduceOp={list(ReduceOp.RedOpType)[one.reduction - 1].name}"] if one.reduction else []
    return f"CollectiveFingerPrint({', '.join(parts)})"


def _counts(one: _Signature) -> bool:
    """Whether its number that is the same everywhere is a number of elements."""
    return _KINDS[one.kind] in ("ALLREDUCE", "REDUCE", "BROADCAST")


def _size(one: _Signature) -> str:
    return f"{one.same} elements" if _counts(one) else "its tensors"


def _hint(one: _Signature, other: _Signature) -> str:
    """What differs where the words are the same."""
    if one[:5] == other[:5] and one.same != other.same:
        return " The sizes of the tensors differ."
    if one[:6] == other[:6]:
        return " The operations with a root before it, such as broadcast, differ in order, root or size."
    return ""
