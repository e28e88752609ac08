"""What processes of a job write down for one another, in one process: what ranks wait for, and how launchers end a job."""

from __future__ import annotations

import threading
import time

import pytest

import msadapter.distributed as dist
from msadapter.distributed import meeting, signatures
from msadapter.distributed.agent import Job
from msadapter.distributed.store import HashStore
from tests.ports import free_port


class _Store(HashStore):
    """Counts the keys that are deleted, and fails on demand as if its process had ended."""

    deleted, failure = 0, None

    def delete_key(self, key):
        self.deleted += 1
        return super().delete_key(key)

    def set(self, key, value):
        if self.failure is not None:
            raise self.failure
        super().set(key, value)


def test_what_ranks_wait_for_is_written_down_and_forgotten():
    store = _Store()
    boards = [signatures._Board(store, [4, 6, 9]) for _ in range(3)]
    boards[0].tell(0, {"waits": "00"})
    boards[2].tell(2, {"mismatch": "what"})
    assert list(boards[1].others(1)) == [(0, {"waits": "00"}), (2, {"mismatch": "what"})]
    assert list(boards[0].others(0)) == [(2, {"mismatch": "what"})]
    boards[0].forget(0)
    assert list(boards[1].others(1)) == [(2, {"mismatch": "what"})] and store.deleted == 1
    boards[0].forget(0)
    boards[1].forget(1)
    assert store.deleted == 1  # nothing was told, so the store is not asked
    other = signatures._Board(store, [4, 6, 10])  # of another group
    assert list(other.others(0)) == []


def test_the_process_that_keeps_the_board_may_have_ended():
    store = _Store()
    board = signatures._Board(store, [0, 1])
    for store.failure in (dist.DistNetworkError("gone"), ConnectionResetError()):
        board.tell(0, {"waits": "00"})
        board.forget(0)
    assert store.deleted == 0
    store.failure = dist.DistBackendError("a mismatch")
    with pytest.raises(dist.DistBackendError, match="a mismatch"):
        board.tell(0, {})


@pytest.fixture
def launchers(monkeypatch):
    """Start the launchers of two machines that have joined a job, with ``restarts`` left. The first keeps the store."""
    stores = []

    def begin(restarts):
        port = free_port()
        jobs = [
            Job([], 1, 2, 2, rank, port=port, max_restarts=restarts, join_timeout=60.0, secret=b"a" * 16)
            for rank in (0, 1)
        ]
        made = [meeting.Meeting(job) for job in jobs]
        stores.append(made[0].store)
        other = threading.Thread(target=made[1].join)
        other.start()
        made[0].join()
        other.join()
        return made

    monkeypatch.setattr(meeting, "_LOOKS", 0.1)
    yield begin
    for store in stores:
        store.close()


def _seconds_of(call) -> float:
    begin = time.monotonic()
    call()
    return time.monotonic() - begin


@pytest.mark.parametrize("keeper", [True, False])
def test_the_last_failure_ends_the_job_on_all_machines(launchers, keeper):
    """Who keeps the store waits, if the others do not say that they know, until they have had the time to look at it twice."""
    first, second = launchers(0)
    assert first.keeps_store and not second.keeps_store and first.round.world_size == 2
    own, other = (first, second) if keeper else (second, first)
    told = []
    waited = _seconds_of(lambda: told.append(own.failed("what has failed")))
    assert told == [False] and (waited >= 2 * meeting._LOOKS or not keeper)
    with pytest.raises(meeting.JobEnded, match="what has failed"):
        other.look()
    assert other.failed("something else") is False


@pytest.mark.parametrize("how", ["failed", "leave"])
@pytest.mark.parametrize("known", ["look", "failed"])
def test_who_keeps_the_store_goes_when_the_others_know_the_end(launchers, monkeypatch, how, known):
    first, second = launchers(0)
    monkeypatch.setattr(meeting, "_LOOKS", 60.0)
    told = []

    def notice():
        while second._read("ended") is None:
            time.sleep(0.01)
        try:
            told.append(second.look() if known == "look" else second.failed("something else"))
        except meeting.JobEnded as end:
            told.append(str(end))

    other = threading.Thread(target=notice)
    other.start()
    assert _seconds_of(lambda: getattr(first, how)("what has failed")) < 30
    other.join()
    assert told == ["what has failed" if known == "look" else False]


def test_a_failure_while_restarts_are_left_starts_all_again(launchers):
    first, second = launchers(1)
    assert second.failed("what has failed") is True
    assert first.failed("the same") is True  # in the same round, so it is no further restart
    for each in (first, second):
        with pytest.raises(meeting.NewRound):
            each.look()
        each.look()  # too soon after the look before


@pytest.mark.parametrize("keeper", [True, False])
def test_a_machine_that_leaves_ends_a_job_that_needs_it(launchers, keeper):
    made = launchers(1)
    own, other = made if keeper else reversed(made)
    waited = _seconds_of(lambda: own.leave("the launcher has received SIGTERM"))
    assert waited >= 2 * meeting._LOOKS or not keeper
    with pytest.raises(meeting.JobEnded, match="received SIGTERM"):
        other.look()


@pytest.mark.parametrize("keeper", [True, False])
def test_machines_end_together(launchers, keeper):
    """No launcher ends before all ranks of all machines have succeeded. The one with the store waits no longer than that."""
    made = launchers(0)
    own, other = made if keeper else reversed(made)
    waiting = threading.Thread(target=own.agree_on_end)
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    assert _seconds_of(other.agree_on_end) < 5
    waiting.join(5)
    assert not waiting.is_alive()


def test_who_keeps_the_store_is_the_last_to_end(launchers):
    first, second = launchers(0)
    second._set("end/0/1", 1)  # the other has not yet read that all have succeeded
    waiting = threading.Thread(target=first.agree_on_end)
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()
    second.agree_on_end()
    waiting.join(5)
    assert not waiting.is_alive()


def test_the_end_is_known_when_all_others_know_it(launchers):
    first, second = launchers(0)
    number = first.round.number
    first.round = meeting.Round(number, 1, 3, 1, 3)  # the second of three
    assert not first._all_know()
    for node in (2, 0):
        assert not first._all_know()
        second._set(f"told/{node}", 1)
    assert first._all_know()
    second._set("round", number + 1)  # who takes part in the next round is unknown
    assert not first._all_know()
