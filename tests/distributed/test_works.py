"""Handles of operations: how often they poll, when they give up, and what their futures hold. Nothing is sent."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

import msadapter as torch
from msadapter.distributed import point_to_point, progress, signatures, watchdog, work
from msadapter.distributed.errors import DistBackendError
from msadapter.distributed.store import HashStore


class Clock:
    """A clock that advances only when the code sleeps or yields, and a record of both."""

    def __init__(self, monkeypatch):
        self.now, self.pauses, self.yields = 100.0, [], 0
        monkeypatch.setattr(work, "time", SimpleNamespace(monotonic=lambda: self.now, sleep=self.sleep))
        monkeypatch.setattr(work, "os", SimpleNamespace(sched_yield=self.give_way))

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds

    def give_way(self):
        self.yields += 1
        self.now += 0.0003


@pytest.fixture
def clock(monkeypatch):
    return Clock(monkeypatch)


class Request:
    """A request of MPI that ends at a given number of tests."""

    def __init__(self, tests, error=None):
        self.left, self.error, self.tests = tests, error, 0

    def Test(self, status=None):  # noqa: N802 - MPI's name
        self.tests += 1
        self.left -= 1
        if self.left <= 0 and self.error is not None:
            raise self.error
        return self.left <= 0


class Backend:
    """What an operation asks its backend for."""

    name, sequence, timeout, aborted, aborted_at = "g", 8, 5.0, None, None
    ranks = (0, 4, 6)
    mpi = SimpleNamespace(Status=lambda: SimpleNamespace(Get_source=lambda: 2))

    def __init__(self):
        self.asked, self.gone = [], []

    def ended(self, ranks):
        self.asked.append(list(ranks))
        return [rank for rank in ranks if rank in self.gone]


class Comparison:
    """Signatures that agree at a given number of tests, or never."""

    def __init__(self, tests=1, error=None):
        self.request, self.error, self.told = Request(tests), error, []

    def Test(self):  # noqa: N802 - MPI's name
        return self.request.Test()

    def explain(self):
        self.told.append("explain")

    def look(self, waited):
        self.told.append("look")
        if self.error is not None:
            raise self.error

    def forget(self):
        self.told.append("forget")


def made(request, name="ALLREDUCE", backend=None, source=-1, comparison=None, finish=None):
    return work.MpiWork(
        backend or Backend(), name, torch.ones(2, 3), request, [], finish, "kept", source, comparison
    )


NEVER = 10**9


# ---- waiting
@pytest.mark.parametrize("tests, slept", [(1, False), (50, False), (60, True)])
def test_short_operations_end_without_a_pause(clock, tests, slept):
    request = Request(tests)
    assert made(request).wait() is True
    assert request.tests == tests and bool(clock.yields) == slept and (clock.pauses == [] or slept)


def test_pauses_grow_up_to_a_limit(clock):
    request = Request(120)
    made(request).wait()
    assert clock.yields == 4  # a millisecond of them
    assert clock.pauses[:3] == pytest.approx([0.00002, 0.000024, 0.0000288])
    assert clock.pauses == sorted(clock.pauses) and clock.pauses[-1] == 0.0005 == max(clock.pauses)
    assert len(clock.pauses) + clock.yields + 50 + 1 == request.tests


@pytest.mark.parametrize(
    "timeout, own, patience, looks",
    [(None, None, 5.0, 24), (2.5, None, 2.5, 12), (None, 2.5, 2.5, 12), (2.5, 9.0, 2.5, 12)],
)
def test_patience_ends(clock, monkeypatch, timeout, own, patience, looks):
    monkeypatch.setattr(watchdog.watch, "store", None)
    backend = Backend()
    operation = made(Request(NEVER), backend=backend, comparison=Comparison())
    operation.timeout = own
    with pytest.raises(DistBackendError, match=r"ALLREDUCE\(SeqNum=8, \[2, 3\] torch.float32\)") as caught:
        operation.wait(timeout)
    waited = clock.now - 100.0
    assert patience < waited < patience + 0.001 and f"ran for {int(waited * 1000)} milli" in str(caught.value)
    assert len(backend.asked) == looks  # a little more than 0.2 s apart


@pytest.mark.parametrize(
    "source, comparison, needed", [(1, None, [4]), (-1, None, []), (-1, Comparison(NEVER), [0, 4, 6])]
)
def test_who_must_be_alive(clock, source, comparison, needed):
    """The sender of a message, and all ranks of a collective. No rank in particular is needed to receive from any rank."""
    backend = Backend()
    backend.gone = [4, 9]
    operation = made(Request(NEVER), "OPERATION", backend, source, comparison)
    with pytest.raises(DistBackendError) as caught:
        operation.wait()
    assert backend.asked[0] == needed
    assert ("the processes of ranks [4] have ended" in str(caught.value)) == (4 in needed)
    assert (clock.now < 102) == (4 in needed)


def test_a_message_of_a_process_that_has_ended_may_still_arrive(clock):
    backend, request = Backend(), Request(NEVER)
    backend.gone = [4]

    def ended(ranks):
        request.left = 1  # it arrives while we look
        return [4]

    backend.ended = ended
    assert made(request, "RECV", backend, 1).wait() is True


def test_what_others_wait_for(clock):
    agreed = Comparison(70)
    made(Request(1), comparison=agreed).wait()
    assert set(agreed.told) == {"look", "forget"} and agreed.told[-1] == "forget"
    assert agreed.told.count("forget") == 1 and agreed.told.count("look") == len(clock.pauses)
    before = len(work._abandoned)
    other = Comparison(NEVER, DistBackendError("they run a barrier"))
    with pytest.raises(DistBackendError, match="they run a barrier"):
        made(Request(NEVER), comparison=other).wait()
    assert other.told == ["look"] and "kept" in work._abandoned[before][0]
    del work._abandoned[before:]


# ---- polling
def test_data_and_signatures_are_both_needed():
    for data, hashes in ((3, 1), (1, 3), (3, 3), (2, 3)):
        request, comparison = Request(data), Comparison(hashes)
        operation = made(request, comparison=comparison)
        assert [operation.poll() for _ in range(4)] == [False, False, True, True]
        assert (request.tests, comparison.request.tests) == (data, hashes)  # none is asked once more


def test_errors_of_mpi():
    before = len(work._abandoned)
    comparison = Comparison()
    operation = made(Request(1, ValueError("truncated")), comparison=comparison)
    assert operation.poll() and not operation.is_success() and comparison.told == ["explain"]
    assert "kept" in work._abandoned[before][0]
    del work._abandoned[before:]
    for _ in range(2):
        with pytest.raises(DistBackendError, match=r"ALLREDUCE\(SeqNum=8.* in process group 'g': truncated"):
            operation.wait()
    assert isinstance(operation.exception(), DistBackendError) and operation.is_completed()
    message = made(Request(1, ValueError("truncated")), "SEND")
    assert message.poll() and "truncated" in str(message.exception()) and len(work._abandoned) == before


@pytest.mark.parametrize(
    "name, source, told", [("RECV", -1, 2), ("RECV from 1", 1, 1), ("SEND to 1", -1, -1), ("RECV", 0, 0)]
)
def test_the_sender_of_a_message(name, source, told):
    operation = made(Request(2), name, source=source)
    assert not operation.poll() and operation.source_rank() == source
    assert operation.poll() and operation.source_rank() == operation._source_rank() == told


def test_operations_of_an_aborted_group(clock):
    backend = Backend()
    operation = made(Request(NEVER), backend=backend)
    before = len(work._abandoned)
    backend.aborted, backend.aborted_at = "{} was aborted", clock.now
    assert not operation.poll()
    clock.now += 0.19  # it may still end
    assert not operation.poll() and len(work._abandoned) == before
    clock.now += 0.02
    assert operation.poll() and len(work._abandoned) == before + 1
    del work._abandoned[before:]
    with pytest.raises(RuntimeError, match=r"^ALLREDUCE\(SeqNum=8, .*\) was aborted$"):
        operation.wait()


def test_an_operation_ends_once(monkeypatch):
    calls, followed = [], []
    operation = made(Request(2), finish=lambda: calls.append(1))
    monkeypatch.setattr(progress, "follow", followed.append)
    operation.in_background()
    assert followed == [operation] and calls == []
    assert operation.is_success() and operation.wait() and operation.result() == [] and calls == [1]
    assert operation._keep is None
    ended = made(Request(1))
    ended.in_background()
    assert followed == [operation]
    barrier = work.MpiWork(Backend(), "BARRIER", None, Request(1), [], None, None)
    assert barrier.describe() == "BARRIER(SeqNum=8)" and barrier.shape is barrier.dtype is None


def test_several_operations_at_a_time():
    waited, followed = [], []

    class Part(work.Work):
        def in_background(self):
            followed.append(self)

    parts = [Part([k], lambda timeout, k=k: waited.append((k, timeout))) for k in range(3)]
    assert work.together(parts[:1]) is parts[0] and followed == parts[:1]
    whole = work.together(parts)
    assert followed == [parts[0], *parts] and not whole.is_completed() and waited == []
    parts[1].wait(3)
    assert not whole.is_completed() and waited == [(1, 3)]
    assert whole.wait(7) and waited == [(1, 3), (0, 7), (2, 7)] and whole.result() == [0, 1, 2]
    assert whole.is_completed() and whole.is_success()
    again = work.Together([work.Work([5])])
    assert again.is_completed() and again.is_success()


# ---- futures
def test_values_of_futures():
    """The value of a work's future is computed by whoever asks for it first, even before the work has ended."""
    calls = []

    def compute():
        calls.append(1)
        return [4]

    future = work._LazyFuture(compute, lambda: False)
    assert future.value() == [4] and future.value() == [4] and calls == [1] and future.done()

    def inner():
        with pytest.raises(RuntimeError, match="not completed"):
            around.value()
        return 3

    around = work._LazyFuture(inner, lambda: False)
    assert around.wait() == 3


def test_the_future_of_a_work():
    calls = []
    operation = work.Work([7], calls.append)
    future = operation.get_future()
    assert not future.done() and calls == []
    assert (
        future.then(lambda f: f.value()[0] + 1).wait() == 8 and calls == [None] and operation.is_completed()
    )
    operation = work.Work([7], calls.append)
    future = operation.get_future()
    operation.wait()
    assert future.done() and future.wait() == [7] and len(calls) == 2

    def fails(timeout):
        raise KeyError("x")

    future = work.Work([], fails).get_future()
    follower = future.then(lambda f: f.value())
    for _ in range(2):
        with pytest.raises(KeyError):
            follower.wait()
    assert future.done()


# ---- signatures of operations that wait
def test_looks_at_what_others_wait_for_become_seldom():
    looks = []

    class Waiting(signatures.Waiting):
        def own(self):
            return b"own"

    waiting = Waiting(SimpleNamespace(look=lambda own: looks.append(own)))
    times = []
    for step in range(4000):
        waiting.look(step / 10)
        if len(looks) > len(times):
            times.append(step / 10)
    assert times == [1, 2, 4, 8, 16, 32, 64, 124, 184, 244, 304, 364] and set(looks) == {b"own"}


def test_an_error_of_mpi_is_explained_by_the_signatures(monkeypatch):
    """For a second, which is asked more and more seldom. Errors that MPI reports again are passed over."""
    clock = SimpleNamespace(now=5.0, pauses=[], monotonic=lambda: clock.now)

    def sleep(seconds):
        clock.pauses.append(seconds)
        clock.now += seconds

    clock.sleep = sleep
    monkeypatch.setattr(signatures, "time", clock)
    heard = []
    known = SimpleNamespace(mpi_error=KeyError, hear=lambda: heard.append(clock.now))

    class Waiting(signatures.Waiting):
        def Test(self):  # noqa: N802 - MPI's name
            raise KeyError

    Waiting(known).explain()
    assert 6.0 <= clock.now < 6.05 and len(heard) == len(clock.pauses)
    assert clock.pauses[:3] == [0.001, 0.002, 0.004] and max(clock.pauses) == clock.pauses[-1] == 0.05

    def refuse():
        raise DistBackendError("another rank runs a barrier")

    known.hear = refuse
    with pytest.raises(DistBackendError, match="another rank runs a barrier"):
        Waiting(known).explain()


ALL_REDUCE = ("ALLREDUCE", torch.float32, 0, -1, 3)  # kind, dtype, reduction, root, elements


@pytest.mark.parametrize("other, words, hint", [
    (("ALLREDUCE", torch.float32, 0, -1, 4), "ALLREDUCE, Numel=4, TensorDtypes=float32, ReduceOp=SUM|all_reduce of 4 elements",
     " The sizes of the tensors differ."),
    (("ALLREDUCE", torch.float64, 0, -1, 4), "ALLREDUCE, Numel=4, TensorDtypes=float64, ReduceOp=SUM|all_reduce of 4 elements", ""),
    (("ALLREDUCE", torch.float32, 4, -1, 3), "ALLREDUCE, Numel=3, TensorDtypes=float32, ReduceOp=MAX|all_reduce of 3 elements", ""),
    (("BARRIER", None, None, -1, 0), "BARRIER|barrier of its tensors", ""),
    (("REDUCE", torch.float32, 0, 2, 3), "REDUCE, Root=2, Numel=3, TensorDtypes=float32, ReduceOp=SUM|reduce of 3 elements", ""),
    (ALL_REDUCE, "ALLREDUCE, Numel=3, TensorDtypes=float32, ReduceOp=SUM|all_reduce of 3 elements",
     " The operations with a root before it, such as broadcast, differ in order, root or size."),
])  # fmt: skip
def test_what_two_ranks_run_is_put_into_words(other, words, hint):
    """With what differs where the words are the same. The group has failed from then on, and the others are told."""
    comm = SimpleNamespace(Get_rank=lambda: 1, Get_attr=lambda key: None)
    store = HashStore()
    group = signatures.Signatures(SimpleNamespace(Exception=KeyError, TAG_UB=0), comm, [4, 6, 9], store)
    own, theirs = (
        signatures._C.ledger_sign(signatures._C.ledger_open(1), False, 7, *facts, 0, 0)
        for facts in (ALL_REDUCE, other)
    )
    what, size = words.split("|")
    with pytest.raises(DistBackendError) as caught:
        group.refuse(own, theirs, 2)
    assert str(caught.value) == (
        "Detected mismatch between collectives on ranks. Rank 6 is running collective: CollectiveFingerPrint("
        "SequenceNumber=7, OpType=ALLREDUCE, Numel=3, TensorDtypes=float32, ReduceOp=SUM), but Rank 9 is running "
        f"collective: CollectiveFingerPrint(SequenceNumber=7, OpType={what}). Rank 9 runs {size}.{hint}"
    )
    with pytest.raises(DistBackendError, match="all_reduce: an earlier collective .* Detected mismatch"):
        group.check_whole("ALLREDUCE")
    peer = SimpleNamespace(Get_rank=lambda: 0, Get_attr=lambda key: None)
    waiting = signatures.Signatures(SimpleNamespace(Exception=KeyError, TAG_UB=0), peer, [4, 6, 9], store)
    with pytest.raises(DistBackendError, match="Rank 6 is running collective"):
        waiting.hear()
    with pytest.raises(DistBackendError, match="do not agree about the sizes of the parts"):
        waiting.refuse(own, theirs, 3)  # a number after the last rank: the sums of all differ


def test_sizes_are_not_what_differs_between_roots():
    one = signatures._Fields("REDUCE", torch.float32, 0, 7, 1, 3)
    assert signatures._hint(one, one._replace(root=2, same=4)) == ""
    assert signatures._hint(one, one._replace(same=4)) == " The sizes of the tensors differ."


def test_what_follows_waits_for_the_thread_that_computes():
    """Not only for the future that another thread has begun to compute."""
    begun, end, order = threading.Event(), threading.Event(), []

    def compute():
        begun.set()
        end.wait(20)
        order.append("computed")
        return 3

    first = work._LazyFuture(compute, lambda: False)
    thread = threading.Thread(target=first.wait)
    thread.start()
    begun.wait(20)
    threading.Timer(0.1, end.set).start()
    assert first.then(lambda future: order.append("then") or future.value() + 1).wait() == 4
    thread.join(20)
    assert order == ["computed", "then"]


@pytest.mark.parametrize("own", [True, False])
def test_messages_that_nobody_waits_for_are_polled_meanwhile(monkeypatch, own):
    begun = []

    class Message(work.Work):
        def in_background(self):
            begun.append(self)

    group = SimpleNamespace(_backend=SimpleNamespace(recv=lambda *a: Message(), send=lambda *a: Message()))
    monkeypatch.setattr(point_to_point, "not_in_group", lambda group, what: not own)
    monkeypatch.setattr(point_to_point, "resolve", lambda group: group)
    monkeypatch.setattr(point_to_point, "get_rank", lambda group: 0)
    for start, named in (
        (point_to_point.irecv, {"group_src": 1}),
        (point_to_point.irecv, {}),
        (point_to_point.isend, {"group_dst": 1}),
    ):
        made = start(torch.ones(1), group=group, **named)
        assert begun == ([made] if own else []) and (made is None) != own
        begun.clear()
    if not own:
        assert point_to_point.recv(torch.ones(1), group=group) == -1
        assert point_to_point.send(torch.ones(1), group=group, group_dst=1) is None
