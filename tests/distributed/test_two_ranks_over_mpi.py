"""The backend over MPI between two ranks that threads play, which hand each other the bytes that they would send."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

import msadapter as torch
from msadapter.distributed import ReduceOp, mpi_backend, shared_backend
from tests.distributed.played import played


class Done:
    """A request that has ended."""

    @staticmethod
    def Test(status=None):  # noqa: N802 - MPI's name
        return True


class Agrees:
    """Signatures that agree. They keep what the ranks must agree about."""

    name, unconfirmed = "pair", 0

    def __init__(self):
        self.given = []

    def start(self, name, sequence, dtype, agreement):
        self.given.append((name, sequence, dtype, agreement))
        return SimpleNamespace(Test=lambda: True, forget=lambda: None, explain=lambda: None)


class Comm:
    """A communicator. Buffers are (address, bytes), and counts are bytes."""

    def __init__(self, group, largest_tag):
        self.group, self.largest_tag = group, largest_tag

    def Get_attr(self, key):
        assert key == "TAG_UB"
        return self.largest_tag

    def _swap(self, parts):
        return self.group.line.exchange(self.group.me, parts)

    def Ialltoallv(self, send, receive):
        (data, _), (counts, places), _ = send
        given = self._swap([ctypes.string_at(data + p, n) for n, p in zip(counts, places, strict=True)])
        (room, _), (counts, places), _ = receive
        for parts, count, place in zip(given, counts, places, strict=True):
            assert len(parts[self.group.me]) == count
            ctypes.memmove(room + place, parts[self.group.me], count)
        return Done

    def Iallgather(self, send, receive):
        (room, _), count, _ = receive
        start = room + count * self.group.me
        if send is not IN_PLACE:  # MPI forbids that what is sent and what is received overlap
            start = send[0][0]
            assert start + count <= room or room + count * self.group.size() <= start
        given = self._swap(ctypes.string_at(start, count))
        for place, part in enumerate(given):
            ctypes.memmove(room + count * place, part, count)
        return Done


IN_PLACE = object()
MPI = SimpleNamespace(
    BYTE="BYTE",
    TAG_UB="TAG_UB",
    IN_PLACE=IN_PLACE,
    buffer=SimpleNamespace(fromaddress=lambda address, size: (address, size)),
)


@pytest.fixture(autouse=True)
def mpi(monkeypatch):
    monkeypatch.setattr(mpi_backend.mpi_world.job, "mpi", MPI)


def pair(program, largest_tag=None):
    """The results of program(backend) of both ranks."""

    def run(group):
        return program(
            mpi_backend.MpiBackend(Comm(group, largest_tag), group.me, group._ranks, 5.0, Agrees())
        )

    return played(run, [4, 9])


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_two_ranks_add_each_others_tensors(dtype, whole):
    def program(backend):
        own = torch.tensor([[1.5, 2.0], [4.0, 0.25]]).to(dtype) * (backend.rank + 1)
        tensor = own if whole else own.t().contiguous().t()
        assert tensor.is_contiguous() == whole
        kept = []
        for _ in range(2):  # the second time with the room of the first
            backend.allreduce(tensor, ReduceOp.SUM).wait()
            kept += backend._rooms._spare
        assert len(kept) == 2 and kept[0] is kept[1]
        (name, sequence, kind, agreement), _ = backend._signatures.given
        assert (name, sequence, kind, agreement.op, agreement.same) == (
            "ALLREDUCE", 1, dtype, ReduceOp.SUM, 4,
        )  # fmt: skip
        return tensor.tolist()

    assert pair(program) == [[[9.0, 12.0], [24.0, 1.5]]] * 2


@pytest.mark.parametrize("rank", [0, 1])
def test_what_a_rank_gathers_may_lie_in_the_output(rank):
    """The tensor in its own place is not sent to itself; one that overlaps with another place is copied before."""

    def program(backend):
        inside, across = torch.zeros(4), torch.zeros(4)
        inside[2 * backend.rank : 2 * backend.rank + 2] = backend.rank + 1.0
        across[1:3] = backend.rank + 1.0
        backend.allgather_into(inside, inside[2 * backend.rank : 2 * backend.rank + 2]).wait()
        backend.allgather_into(across, across[1:3]).wait()
        return inside.tolist(), across.tolist()

    assert pair(program)[rank] == ([1, 1, 2, 2], [1, 1, 2, 2])


def test_large_parts_for_oneself_are_copied_here():
    """MPI gets no bytes of them."""

    def program(backend):
        sent = torch.arange(4000.0) + 10000 * backend.rank
        received, asked = torch.zeros(4000), []
        swap = backend.comm._swap
        backend.comm._swap = lambda parts: asked.append([len(p) for p in parts]) or swap(parts)
        backend.alltoall_single(received, sent, None, None).wait()
        return asked, received[::1000].tolist()

    assert pair(program) == [
        ([[0, 8000]], [0.0, 1000.0, 10000.0, 11000.0]),
        ([[8000, 0]], [2000.0, 3000.0, 12000.0, 13000.0]),
    ]


def test_tags_have_a_limit():
    assert pair(lambda backend: backend._largest_tag) == [32767] * 2
    assert pair(lambda backend: backend._largest_tag, 99) == [99] * 2


# ---- groups of one machine
@pytest.mark.parametrize("name, arguments", [
    ("allreduce", (torch.ones(2), ReduceOp.BXOR)),
    ("reduce_scatter_into", (torch.ones(2), torch.ones(4), ReduceOp.BXOR)),
    ("reduce_scatter", (torch.ones(2), [torch.ones(2), torch.ones(2)], ReduceOp.BXOR)),
])  # fmt: skip
def test_mpi_does_what_the_native_layer_does_not(monkeypatch, name, arguments):
    class Backend(shared_backend.SharedBackend):
        def __init__(self):
            self.asked = []

        def _started(self, kind, tensor, *rest):
            self.asked.append(kind)
            return self.answer

    backend, passed = Backend(), []
    monkeypatch.setattr(mpi_backend.MpiBackend, name, lambda self, *given: passed.append(given) or "over MPI")
    backend.answer = None
    assert getattr(backend, name)(*arguments) == "over MPI"
    ((first, second, *rest),) = passed
    assert first is arguments[0] and second is arguments[1] and rest == list(arguments[2:])
    backend.answer = "here"
    assert getattr(backend, name)(*arguments) == "here" and len(passed) == 1
    kinds = {"allreduce": "ALLREDUCE", "reduce_scatter": "REDUCE_SCATTER"}
    assert backend.asked == [kinds.get(name, "_REDUCE_SCATTER_BASE")] * 2
