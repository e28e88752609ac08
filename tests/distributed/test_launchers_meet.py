"""How launchers find out who takes part: rounds that close early or late, machines that fall silent, and late ones."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

import msadapter.distributed as dist
from msadapter.distributed import meeting
from msadapter.distributed.agent import Job
from msadapter.distributed.store import HashStore


class Clock:
    """A clock that advances only in calls of sleep."""

    def __init__(self):
        self.now, self.acts = 1000.0, []

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds
        if self.acts and self.now >= self.acts[0][0]:
            self.acts.pop(0)[1]()


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(meeting, "time", made)
    return made


@pytest.fixture
def store(monkeypatch):
    """The store that all launchers of a test share."""
    made = HashStore()
    made.set_timeout(timedelta(seconds=1))
    monkeypatch.setattr(meeting.Meeting, "_store", lambda self, first: made)
    return made


def launcher(rank=0, nodes=3, least=2, **more):
    options = {"join_timeout": 60.0, "last_call": 5.0, "silence": 3.0, "max_restarts": 2} | more
    return meeting.Meeting(Job([], 2, nodes, least, rank, **options))


def arrive(store, place, size):
    """Another launcher, which arrives at the round that is open."""
    store.add("agents/none/0/arrived", 1)
    store.set(f"agents/none/0/size/{place}", str(size))


def test_who_keeps_the_store(store):
    assert launcher(0).keeps_store and not launcher(1).keeps_store and launcher(None, 1).keeps_store
    assert launcher(3, 1).keeps_store and launcher(None, host="127.0.0.1").keeps_store
    assert not launcher(
        None, host="192.0.2.1"
    ).keeps_store  # an address for documentation, which no machine has
    assert launcher(None, 1, host="192.0.2.1").keeps_store  # no other machine could
    assert not meeting._is_local("192.0.2.1") and meeting._is_local("localhost")


def test_a_launcher_whose_port_is_taken_uses_the_store_that_is_there(monkeypatch):
    asked = []

    def store(self, first):
        asked.append(first)
        if first:
            raise dist.DistNetworkError("the port is in use")
        return HashStore()

    monkeypatch.setattr(meeting.Meeting, "_store", store)
    assert not launcher(None).keeps_store and asked == [True, False]
    with pytest.raises(dist.DistNetworkError, match="in use"):
        launcher(0)
    with pytest.raises(dist.DistNetworkError, match="in use"):
        launcher(0, 1)


def test_who_is_not_first_waits_until_the_round_is_closed(store, clock):
    arrive(store, 0, 3)
    clock.acts = [(1012.0, lambda: store.set("agents/none/0/closed", "2"))]
    made = launcher(None).join()
    assert (made.number, made.place, made.nodes, made.first_rank, made.world_size) == (0, 1, 2, 3, 5)
    assert 1012 <= clock.now < 1012.2


@pytest.mark.parametrize("at, nodes, until", [(1002.0, 2, 1007.0), (None, 3, 1000.0)])
def test_who_is_first_closes_the_round(store, clock, at, nodes, until):
    """At once if all are there, otherwise when the last call is over."""
    own = launcher(0)
    if at is None:
        arrive(store, 1, 4), arrive(store, 2, 4)
    else:
        clock.acts = [(at, lambda: arrive(store, 1, 4))]
    made = own.join()
    assert (made.place, made.nodes, made.first_rank, made.world_size) == (0, nodes, 0, 2 + 4 * (nodes - 1))
    assert until <= clock.now < until + 0.3 and store.get("agents/none/0/closed") == str(nodes).encode()


def test_more_machines_than_the_job_takes(store, clock):
    for place in (1, 2, 3):
        arrive(store, place, 1)
    assert launcher(0).join().nodes == 3


def test_given_places_need_no_closing(store, clock):
    store.set("agents/none/0/size/0", "7")
    made = launcher(1, 2, 2).join()
    assert (made.nodes, made.first_rank, made.world_size) == (2, 7, 9) and clock.now == 1000
    assert not store.check(["agents/none/0/closed"])


def test_places_by_arrival_need_closing(store, clock):
    """Even if the number of machines is fixed: another machine may take the place of one that is late."""
    arrive(store, 0, 7)
    clock.acts = [(1003.0, lambda: store.set("agents/none/0/closed", "2"))]
    made = launcher(None, 2, 2).join()
    assert (made.place, made.first_rank, made.world_size) == (1, 7, 9) and 1003 <= clock.now < 1003.2


def test_too_few_machines(store, clock):
    with pytest.raises(RuntimeError, match=re.escape(
        "torchrun: waited 60 s (join_timeout), but only 1 of at least 2 machines have arrived"
    )):  # fmt: skip
        launcher(0).join()
    assert 1060 < clock.now < 1060.2


def test_a_late_machine_waits_for_the_next_round(store, clock):
    store.set("agents/none/0/closed", "2")
    store.add("agents/none/0/arrived", 2)
    own = launcher(None)

    def next_round():
        assert store.get("agents/none/0/late") == b"1"
        store.set("agents/none/round", "1")
        store.set("agents/none/1/closed", "1")

    clock.acts = [(1004.0, next_round)]
    made = own.join()
    assert (made.number, made.place, made.nodes, made.world_size) == (
        1,
        0,
        1,
        2,
    ) and 1004 <= clock.now < 1004.2


def test_a_late_machine_may_wait_in_vain(store, clock):
    store.set("agents/none/0/closed", "2")
    store.add("agents/none/0/arrived", 2)
    with pytest.raises(
        RuntimeError, match="the job runs on 2 of at most 3 machines and does not start again"
    ):
        launcher(None).join()


def test_the_job_may_end_while_a_machine_waits(store, clock):
    clock.acts = [(1003.0, lambda: store.set("agents/none/ended", "the reason"))]
    with pytest.raises(meeting.JobEnded, match="the reason"):
        launcher(0).join()
    assert clock.now < 1003.2


# ---- while ranks run
def running(store, nodes=2, place=0, **more):
    made = launcher(place, **more)
    made.round = meeting.Round(0, place, nodes, 0, 4)
    return made


def seen(own, clock, seconds):
    """Look at the store for some seconds, as the agent does. Return what was raised, and when."""
    begin = clock.now
    while clock.now - begin < seconds:
        try:
            own.look()
        except (meeting.NewRound, meeting.JobEnded) as end:
            return type(end), str(end), clock.now - begin
        clock.sleep(0.25)
    return None


@pytest.mark.parametrize("place, lost", [(0, [1]), (1, [0])])
def test_a_machine_that_falls_silent_is_replaced(store, clock, place, lost):
    own = running(store, place=place)
    assert seen(own, clock, 2.9) is None and store.get(f"agents/none/0/beat/{place}") == b"3"
    kind, text, _ = seen(own, clock, 3)
    assert kind is meeting.NewRound and text == f"the launchers of machines {lost} have fallen silent"
    assert store.get("agents/none/round") == b"1" and store.get("agents/none/failures") == b"1"


def test_machines_that_beat_or_have_ended_are_not_lost(store, clock):
    own = running(store, nodes=3)
    store.set("agents/none/end/0/2", "1")
    for _ in range(10):
        store.add("agents/none/0/beat/1", 1)
        assert seen(own, clock, 1.5) is None
    assert seen(own, clock, 6)[1] == "the launchers of machines [1] have fallen silent"


def test_all_that_are_lost_are_named(store, clock):
    assert seen(running(store, nodes=3), clock, 9)[1] == "the launchers of machines [1, 2] have fallen silent"


def test_the_store_is_seldom_asked(store, clock):
    own = running(store)
    own._last_look = clock.now
    assert seen(own, clock, 0.9) is None and not store.check(["agents/none/0/beat/0"])
    alone = running(store, nodes=1, place=0)
    alone.job.nodes = 1
    assert seen(alone, clock, 30) is None and not store.check(["agents/none/0/beat/0"])


@pytest.mark.parametrize("full", [False, True])
def test_a_late_machine_starts_all_again_if_it_can_take_part(store, clock, full):
    own = running(store, nodes=3 if full else 2, silence=1e9)
    store.set("agents/none/0/late", "1")
    found = seen(own, clock, 3)
    assert found == (None if full else (meeting.NewRound, "a machine has joined", 0.0))
    assert store.check(["agents/none/round"]) != full


def test_what_others_have_decided(store, clock):
    own = running(store)
    store.set("agents/none/round", "0")
    assert seen(own, clock, 1) is None
    store.set("agents/none/round", "1")
    assert seen(own, clock, 3)[:2] == (meeting.NewRound, "another machine has asked for it")
    store.set("agents/none/ended", "the reason")
    assert seen(own, clock, 3)[:2] == (meeting.JobEnded, "the reason")
    assert store.get("agents/none/told/0") == b"1"


class Gone(HashStore):
    def _update(self, change):
        raise dist.DistNetworkError("no answer")


def test_the_store_may_be_gone(store, clock):
    own = running(store)
    own.store = Gone()
    kind, text, _ = seen(own, clock, 3)
    assert kind is meeting.JobEnded and text == "the launcher that keeps the store is gone (no answer)"
    assert own.failed("what") is False and own.patience_of_ranks() == 0.0
    own.leave("why")  # no launcher hears it
    own.store = store
    assert own.patience_of_ranks() == 0.0
    store.set(meeting.RANKS_PATIENCE, "7.5")
    assert own.patience_of_ranks() == 7.5


# ---- failures and leaving
def test_restarts_are_counted_over_all_rounds(store, clock):
    own = running(store, max_restarts=2)
    assert own.failed("first") is True and store.get("agents/none/round") == b"1"
    assert own.failed("the same round") is True and store.get("agents/none/failures") == b"1"
    own.round.number = 1
    assert own.failed("second") is True and store.get("agents/none/round") == b"2"
    own.round.number = 2
    assert own.failed("third") is False and store.get("agents/none/ended") == b"third"
    assert own.failed("in the same round") is False and store.get("agents/none/ended") == b"third"


@pytest.mark.parametrize("place, nodes, least, goes_on", [
    (1, 3, 2, True), (1, 2, 2, False), (0, 3, 2, False), (1, 3, 3, False),
])  # fmt: skip
def test_the_others_go_on_without_a_machine_if_enough_are_left(store, clock, place, nodes, least, goes_on):
    own = running(store, nodes, place, least=least)
    own.leave("it must go")
    assert store.check(["agents/none/round"]) == goes_on and store.check(["agents/none/ended"]) != goes_on


def test_leaving_before_or_without_others(store, clock):
    launcher(1).leave("before the first round")
    alone = running(store, nodes=1)
    alone.job.nodes = 1
    alone.leave("alone")
    assert not store.num_keys()


def test_the_end_of_a_single_machine_is_not_discussed(store, clock):
    own = running(store, nodes=1)
    own.agree_on_end()
    assert not store.num_keys()


def test_a_launcher_that_is_gone_at_the_end_does_not_matter(store, clock):
    """All ranks have succeeded; who keeps the store has perhaps not waited."""
    own = running(store, place=1)
    store.set("agents/none/end/0/0", "1")
    writes = store.set

    def set(key, value):
        if "/bye/" in key:
            raise dist.DistNetworkError("gone")
        writes(key, value)

    store.set = set
    own.agree_on_end()
    assert store.get("agents/none/end/0/1") == b"1"


def test_who_keeps_the_store_does_not_wait_for_ever_at_the_end(store, clock, monkeypatch):
    own, waits = running(store, nodes=3), []
    for node in range(3):
        store.set(f"agents/none/end/0/{node}", "1")
    monkeypatch.setattr(store, "wait", lambda keys, patience: waits.append((keys, patience.total_seconds())))
    own.agree_on_end()
    assert waits == [(["agents/none/bye/0/1", "agents/none/bye/0/2"], 10.0)]


def _two_of_two(**more):
    """Both launchers of a job of two machines, in round 0."""
    first, second = (launcher(n, 2, 2, **more) for n in (0, 1))
    for one, number in ((first, 0), (second, 1)):
        one._set(f"0/size/{number}", 2)
    return first, second, [one.join() for one in (first, second)]


def test_a_launcher_in_the_place_of_a_lost_one_begins_a_new_round(store, clock):
    """It comes before the others have missed the lost one, whose beats it would continue."""
    first, _, rounds = _two_of_two()
    assert [one.number for one in rounds] == [0, 0]
    seen = []

    def look():
        clock.now += 2.0
        with pytest.raises(meeting.NewRound) as told:
            first.look()
        seen.append(str(told.value))
        first._set("1/size/0", 2)

    clock.acts = [(clock.now + 1.0, look)]
    again = launcher(1, 2, 2).join()
    assert seen == ["another launcher has come for machine 1"]
    assert (again.number, again.place, again.first_rank, again.world_size) == (1, 1, 2, 4)
    assert first.join().number == 1


def test_a_launcher_in_the_place_of_a_lost_one_waits_for_the_store_of_the_next_start(
    store, clock, monkeypatch
):
    """Without restarts the job ends, and its next start has another store at the same address."""
    first, _, _ = _two_of_two(max_restarts=0)
    fresh, opened = HashStore(), []
    fresh.set_timeout(timedelta(seconds=1))
    late = launcher(1, 2, 2)

    def look():
        clock.now += 2.0
        with pytest.raises(meeting.NewRound):
            first.look()

    def next_start():
        monkeypatch.setattr(meeting.Meeting, "_store", lambda self, first: opened.append(first) or fresh)
        fresh.set("agents/none/0/size/0", "2")

    clock.acts = [(clock.now + 1.0, look), (clock.now + 8.0, next_start)]
    found = late.join()
    assert late.store is fresh and opened == [False]
    assert (found.number, found.place, found.world_size) == (0, 1, 4)


def test_a_launcher_does_not_wait_for_ever_for_the_end_of_a_round(store, clock):
    _two_of_two()
    with pytest.raises(
        RuntimeError, match="waited 60 s .*the round that machine 1 had joined before does not end"
    ):
        launcher(1, 2, 2).join()
