"""Join with ranks that threads play and that have different numbers of inputs."""

from __future__ import annotations

import threading
import warnings

import pytest

import msadapter as torch
from msadapter.distributed.algorithms import join
from msadapter.distributed.algorithms.join import Join, Joinable, JoinHook
from msadapter.distributed.work import Work
from tests.distributed.played import Collectives, played


class Later(Collectives):
    """Collectives whose all_reduce also has an asynchronous form."""

    @staticmethod
    def all_reduce(tensor, group=None, async_op=False):
        Collectives.all_reduce(tensor, group=group)
        return Work([tensor]) if async_op else None


@pytest.fixture(autouse=True)
def exchanged_by_threads(monkeypatch):
    monkeypatch.setattr(join, "collectives", Later)
    monkeypatch.setattr(join, "get_rank", lambda group: group.rank())


class Hook(JoinHook):
    def __init__(self, owner, given):
        self.owner, self.given = owner, given

    def main_hook(self):
        self.owner.calls.append("main")

    def post_hook(self, is_last_joiner):
        self.owner.calls.append(("post", is_last_joiner))


class Counted(Joinable):
    """Notes what happens to it. A step tells the block of it."""

    join_device = torch.device("cpu")

    def __init__(self, group):
        self.group, self.calls, self.given = group, [], None

    @property
    def join_process_group(self):
        return self.group

    def join_hook(self, **kwargs):
        self.given = kwargs
        return Hook(self, kwargs)

    def step(self):
        work = Join.notify_join_context(self)
        self.calls.append(None if work is None else int(work.result()[0].item()))


def test_ranks_with_different_numbers_of_inputs():
    def program(group):
        pair = [Counted(group), Counted(group)]
        with Join(pair, key="word") as block:
            assert isinstance(block, Join)
            for _ in range((1, 3, 2)[group.me]):
                for each in pair:
                    each.step()
        for each in pair:
            assert each.given == {"key": "word"}
            each.step()  # outside of a block nothing is sent
        return [each.calls for each in pair]

    for me, (first, second) in enumerate(played(program, (4, 6, 9))):
        steps = [[3], [3, 2, 1], [3, 2]][me]  # the ranks that have inputs in each step
        rest = ["main"] * (3 - len(steps)) + [("post", me == 1), None]
        assert first == steps + rest and second == [None] * len(steps) + rest


def test_a_rank_without_inputs_stops_the_others():
    def program(group):
        one = Counted(group)
        try:
            with Join([one], throw_on_early_termination=True):
                for _ in range(1 + group.me):
                    one.step()
        except RuntimeError as err:
            return one.calls, str(err)
        return None

    for me, (calls, text) in enumerate(played(program, (4, 6))):
        assert calls == [2]
        assert text == (
            "Rank 0 exhausted all inputs."
            if me == 0
            else "Detected at least one rank that exhausted inputs. Throwing across all ranks."
        )


def test_blocks_that_do_nothing(monkeypatch):
    """Those that are switched off, and those that an error leaves."""
    one = Counted(None)
    monkeypatch.setattr(join, "get_rank", lambda group: 0)
    monkeypatch.setattr(Later, "all_reduce", None)  # nothing may be sent
    with Join([one], enable=False):
        assert tuple(one._join_config) == (False, False, True)
        one.step()
    with pytest.raises(KeyError), Join([one]):
        assert tuple(one._join_config) == (True, False, True)
        raise KeyError
    assert tuple(one._join_config) == (False, False, False) and one.calls == [None]
    with pytest.raises(ValueError, match="at least one joinable"):
        Join([])
    with pytest.raises(ValueError, match="multiple process groups"):
        Join([one, Counted("other")])
    elsewhere = Counted(None)
    elsewhere.join_device = torch.device("meta")
    with pytest.raises(ValueError, match="multiple devices"):
        Join([one, elsewhere])
    with pytest.raises(AssertionError, match="constructor calls the ``Joinable`` constructor"):
        Join.notify_join_context(3)


def test_many_steps_without_inputs(monkeypatch):
    monkeypatch.setattr(join, "_MANY", 3)
    lock, told = threading.Lock(), []

    def warn(text, **options):
        with lock:
            told.append(text)

    monkeypatch.setattr(warnings, "warn", warn)

    def program(group):
        one = Counted(group)
        with Join([one]):
            for _ in range((0, 2, 5)[group.me]):
                one.step()
        return one.calls.count("main")

    assert played(program, (4, 6, 9)) == [5, 3, 0]
    assert sorted(text[:85] for text in told) == [
        f"Detected uneven input skew of greater than 3. This means that rank {me} has at least 3 fe"[:85]
        for me in (0, 1)
    ]
