"""Signatures: the ranks of a group tell each other which collective they run, and on how much data.

MPI does not check this. If ranks disagree about an operation, its dtype or its size, they get meaningless numbers and no error.
Therefore each operation that no rank can finish before all have started it also exchanges a signature of 40 bytes. The
signatures are compared before the result is used, and a difference is an error on every rank. A rank can finish an operation
with a root before others have started it, so such operations do not exchange signatures. They are counted, and the next
signature contains the count.
"""

import struct
import time

from .._values.dtype import ALL
from .errors import DistBackendError
from .reduce_op import ReduceOp

_LAYOUT = struct.Struct("<BBBBIQQQQ")  # kind, dtype, reduction, -, sequence, same, rooted, sent, received
_MASK = (1 << 64) - 1
_DTYPES = {name: number for number, name in enumerate(ALL, 1)}
_CALLS = ("", "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "barrier")
_KINDS = ("", "ALLREDUCE", "REDUCE_SCATTER", "ALLGATHER", "ALLTOALL", "BARRIER")
_NUMBERS = {
    "ALLREDUCE": 1,
    "REDUCE_SCATTER": 2,
    "_REDUCE_SCATTER_BASE": 2,
    "ALLGATHER": 3,
    "_ALLGATHER_BASE": 3,
    "ALLTOALL": 4,
    "BARRIER": 5,
}
_ROOTED = {"REDUCE": 1, "BROADCAST": 2, "GATHER": 3, "SCATTER": 4}
_EXPLAIN = 1.0  # seconds for the signatures to explain an error of MPI


class Agreement:
    """The facts that must agree: a reduction and a number that are the same on all ranks, or the bytes that each pair exchanges.

    sent[i] are the bytes for rank i, received[i] those expected from rank i. Two sums of hashes compare what all ranks send
    with what all expect, so the size of a signature does not depend on the number of ranks.
    """

    def __init__(self, op=None, same: int = 0, sent=(), received=()):
        self.op, self.same, self.sent, self.received = op, same, sent, received


class Signatures:
    """The signatures of one group. They use a communicator `comm` of their own, so other messages cannot match them."""

    def __init__(self, mpi, comm, ranks):
        self._mpi, self._comm, self._ranks = mpi, comm, ranks
        self._rank, self._size = comm.Get_rank(), len(ranks)
        self._rooted, self._broken = 0, ""
        self.unconfirmed = (
            0  # number of the last operation that this rank may have ended before others have begun it
        )

    def rooted(self, name: str, sequence: int, root: int, tensor) -> None:
        """Count an operation with a root, which exchanges no signature."""
        size = tensor.nbytes if name in ("BROADCAST", "REDUCE") else 0  # parts may differ from rank to rank
        what = (_ROOTED[name], sequence, root, _DTYPES[tensor.dtype.name], size)
        self._rooted = hash((self._rooted, *what)) & _MASK
        if (self._rank == root) == (name in ("BROADCAST", "SCATTER")):  # this rank sends
            self.unconfirmed = sequence

    def start(self, name: str, sequence: int, dtype, agreement: Agreement) -> "_Comparison":
        """Send this rank's signature and request those of the others."""
        if self._broken:
            raise DistBackendError(
                f"{_CALLS[_NUMBERS[name]]}: an earlier collective of this process group has failed. {self._broken}"
            )
        here, sent, received = self._rank, 0, 0
        for rank, count in enumerate(agreement.sent):
            sent += _mixed(here, rank, count)
        for rank, count in enumerate(agreement.received):
            received += _mixed(rank, here, count)
        own = _LAYOUT.pack(
            _NUMBERS[name],
            0 if dtype is None else _DTYPES[dtype.name],
            0 if agreement.op is None else 1 + int(agreement.op),
            0,
            sequence & 0xFFFFFFFF,
            agreement.same & _MASK,
            self._rooted,
            sent & _MASK,
            received & _MASK,
        )
        self._rooted, self.unconfirmed = 0, 0
        room = bytearray(len(own) * self._size)
        byte = self._mpi.BYTE
        return _Comparison(self, own, room, self._comm.Iallgather([own, byte], [room, byte]))

    def compare(self, own: bytes, room: bytearray, flows: bool) -> None:
        """Raise DistBackendError with the operation of each rank if the signatures do not agree."""
        if not flows and room == own * self._size:
            return
        found = list(_LAYOUT.iter_unpack(room))
        if all(one[:7] == found[self._rank][:7] for one in found):
            if not (sum(one[7] for one in found) - sum(one[8] for one in found)) & _MASK:
                return
            self._fail(
                "The ranks do not agree about the sizes of the parts "
                f"that they send to each other in {_KINDS[found[0][0]]}(SeqNum={found[0][4]})."
            )
        other = next(i for i, one in enumerate(found) if one[:7] != found[self._rank][:7])
        call = _CALLS[found[other][0]]
        self._fail(
            f"Rank {self._ranks[self._rank]} is running collective: "
            f"{_words(found[self._rank])}, but Rank {self._ranks[other]} is running collective: {_words(found[other])}."
            f" Rank {self._ranks[other]} runs {call} of {_size(found[other])}."
            + _hint(found[self._rank], found[other])
        )

    def _fail(self, what: str) -> None:
        self._broken = f"Detected mismatch between collectives on ranks. {what}"
        raise DistBackendError(self._broken)

    def close(self) -> None:
        """Free the communicator, because the group is destroyed."""
        self._comm.Free()


class _Comparison:
    """An exchange of signatures that is under way."""

    def __init__(self, signatures, own, room, request):
        self._signatures, self._own, self._room, self._request = signatures, own, room, request

    def Test(self) -> bool:  # noqa: N802  as MPI's
        """Return whether all signatures have arrived. DistBackendError if they do not agree."""
        if not self._request.Test():
            return False
        flows = self._own[-16:] != bytes(16)
        self._signatures.compare(self._own, self._room, flows)
        return True

    def explain(self) -> None:
        """Raise the error of the signatures, if they arrive soon and disagree, because MPI has refused the operation."""
        end = time.monotonic() + _EXPLAIN
        while not self.Test() and time.monotonic() < end:
            time.sleep(0.001)


def _mixed(sender: int, receiver: int, count: int) -> int:
    """A number for the bytes that one rank sends to another, such that the sums of different exchanges differ."""
    return pow(count << 40 | sender << 20 | receiver, 5, (1 << 61) - 1)


def _words(one) -> str:
    dtype = next((name for name, number in _DTYPES.items() if number == one[1]), None)
    parts = [f"SequenceNumber={one[4]}", f"OpType={_KINDS[one[0]]}"]
    parts += [f"Numel={one[5]}"] if _KINDS[one[0]] == "ALLREDUCE" else []
    parts += [f"TensorDtypes={dtype}"] if dtype else []
    parts += [f"ReduceOp={list(ReduceOp.RedOpType)[one[2] - 1].name}"] if one[2] else []
    return f"CollectiveFingerPrint({', '.join(parts)})"


def _size(one) -> str:
    if _KINDS[one[0]] == "ALLREDUCE":
        return f"{one[5]} elements"
    return "its tensors"


def _hint(one, other) -> str:
    """A sentence about the difference between two signatures whose texts are equal."""
    if one[:5] == other[:5] and one[5] != other[5]:
        return " The sizes of the tensors differ."
    if one[:6] == other[:6]:
        return " The operations with a root before it, such as broadcast, differ in order, root or size."
    return ""
