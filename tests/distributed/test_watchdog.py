"""What a process tells and asks when an operation is late, in one process with a store in memory."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from types import SimpleNamespace

import pytest

from msadapter.distributed import watchdog
from msadapter.distributed.errors import DistBackendError, DistStoreError
from msadapter.distributed.store import HashStore


class Clock:
    """A clock that advances only in calls of sleep."""

    def __init__(self):
        self.now = 50.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(watchdog, "time", made)
    return made


@pytest.fixture
def watch(monkeypatch):
    made = watchdog._Watch()
    made.rank = 4
    monkeypatch.setattr(watchdog, "watch", made)
    return made


def backend(name="g", sequence=3, position=None, ranks=(4, 6, 9), **more):
    return SimpleNamespace(
        name=name,
        sequence=sequence,
        position=position,
        ranks=list(ranks),
        timeout=timedelta(seconds=2),
        **more,
    )


def position(text, ended=True):
    return SimpleNamespace(describe=lambda: text, _ended=ended)


def work(group, sequence=3, message=False):
    return SimpleNamespace(
        backend=group,
        sequence=sequence,
        message=message,
        timeout=None,
        describe=lambda: "ALLREDUCE(SeqNum=3)",
    )


def test_processes_answer_one_another():
    store, one, two = HashStore(), watchdog._Watch(), watchdog._Watch()
    store.set_timeout(timedelta(seconds=20))
    one.start(store, 4, list)
    two.start(store, 6, lambda: [backend(position=position("BARRIER", False)), backend("empty", 0)])
    assert one._thread.daemon and one._thread.name == "torch.distributed watchdog"
    for _ in range(2):  # each query has a number of its own
        answers = one.ask([4, 6])
        assert set(answers) == {6}
        assert answers[6]["places"] == {"g": [3, "BARRIER", False], "empty": [0, "nothing yet", True]}
        assert "test_watchdog.py" in answers[6]["stack"]  # where the main thread stands
    assert two.ask([4])[4]["places"] == {}
    ends = one._thread, two._thread
    one.stop(), two.stop()
    assert one.store is two.store is None
    watchdog._Watch.ask(SimpleNamespace(store=watchdog.PrefixStore("watchdog", store), rank=4), [4])
    for thread in ends:
        thread.join(10)
        assert not thread.is_alive()


def test_where_a_process_stands():
    made = watchdog._Watch()
    made.groups = lambda: [backend(position=position("SEND", True))]
    told = made._standing(threading.main_thread().ident)
    assert told["places"] == {"g": [3, "SEND", True]}
    assert told["stack"].count("  File ") == 6 and "test_where_a_process_stands" in told["stack"]
    assert made._standing(-1)["stack"] == ""


def test_patience_with_those_that_do_not_answer(clock, watch):
    store = watch.store = HashStore()
    store.set("answer/1/6", json.dumps("here"))
    assert watch.ask([4, 6, 9]) == {6: "here"}
    assert 3.0 <= clock.now - 50 < 3.05 and store.get("ask/1") == b"1"
    begin = clock.now
    store.set("answer/2/6", "1"), store.set("answer/2/9", "2")
    assert watch.ask([6, 9]) == {6: 1, 9: 2} and clock.now - begin < 0.05


def test_errors_of_late_operations(watch):
    group = backend()
    error = watchdog.late(work(group), 2.5)
    assert isinstance(error, DistBackendError)
    head = (
        "[Rank 4] Watchdog caught collective operation timeout: WorkMPI(ALLREDUCE(SeqNum=3), Timeout(ms)=2000) ran "
        "for 2500 milliseconds before timing out. Process group 'g' of ranks [4, 6, 9]."
    )
    assert str(error) == head
    patient = work(group)
    patient.timeout = timedelta(seconds=9)  # its own timeout is the one that is told
    assert "Timeout(ms)=9000" in str(watchdog.late(patient, 2.5))
    watch.store = object()

    def gone(ranks):
        raise DistStoreError("closed")

    watch.ask = gone
    assert str(watchdog.late(work(group), 2.5)) == head + "\nThe job's store does not answer either (closed)."
    assert watchdog.standing(group, [6]) == ""
    answers = {6: {"places": {"g": [2, "BARRIER", True]}, "stack": "here"}}
    watch.ask = lambda ranks: answers if list(ranks) == [4, 6, 9] else None
    assert str(watchdog.late(work(group), 2.5)).splitlines() == [
        head,
        "Ranks that have not arrived: [6, 9] (docs/troubleshooting.md#missing-ranks).",
        "Rank 6 finished BARRIER of this group and stands at:",
        "here",
        "Rank 9 does not answer: its process has ended or is stopped.",
    ]
    lines = watchdog._report(work(group, message=True), answers | {9: {"places": {}, "stack": "there"}})
    assert lines[0].startswith("All ranks have arrived") and lines[2] == (
        "Rank 9 finished not in the group of this group and stands at:\nthere"
    )


def test_nobody_leaves_before_all_have_begun(clock, watch):
    """A rank that ends asks those that may not have begun what it has finished, until they have or the time is over."""
    left, asked = set(), []
    places = {4: 9, 6: 2, 9: 5}

    def ask(ranks):
        asked.append(sorted(ranks))
        clock.now += 0.5
        return {rank: {"places": {"g": [places[rank], "", True]}, "stack": ""} for rank in ranks}

    group = backend(position=position("BROADCAST"), unconfirmed=3)
    group.position = work(group)
    watchdog.confirm(left.__contains__)  # there is no store
    watch.store, watch.ask = object(), ask
    watch.groups = lambda: [backend("other", unconfirmed=0), backend("plain"), group]
    with pytest.raises(DistBackendError, match=r"ALLREDUCE\(SeqNum=3\).* ran for 2500 milliseconds"):
        watchdog.confirm(left.__contains__)
    assert asked[:3] == [[6, 9], [6], [6]] and asked[-1] == [4, 6, 9]  # the last for the message
    asked.clear()
    places[6] = 3
    watchdog.confirm(left.__contains__)
    assert asked == [[6, 9]]
    asked.clear()
    places[6] = 0
    left.add(6)
    watchdog.confirm(left.__contains__)
    assert asked == [[9]]

    def gone(ranks):
        raise OSError

    watch.ask = gone
    left.clear()
    watchdog.confirm(left.__contains__)  # whoever could be asked has gone
