"""What init_process_group and new_group give to a backend, for rank 1 of four ranks that exist on paper only."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace

import pytest

import msadapter.distributed as dist
from msadapter.distributed import backend as backends
from msadapter.distributed import setup, watchdog
from msadapter.distributed.store import HashStore


@pytest.fixture
def job(monkeypatch):
    """Start the job and return what its backends were made of, in order."""
    made = []

    def create(rank, size, ranks, store, timeout, parent):
        closed = []
        backend = SimpleNamespace(
            rank=rank, size=size, ranks=ranks, store=store, timeout=timeout, parent=parent, closed=closed,
            close=lambda: closed.append(1),
        )  # fmt: skip
        made.append(backend)
        return backend

    monkeypatch.setattr(backends, "_factories", {"toy": create})
    monkeypatch.setattr(watchdog.watch, "start", lambda store, rank, groups: made.append(groups))
    monkeypatch.setattr(watchdog.watch, "stop", lambda: None)

    def begin(**options):
        dist.init_process_group("toy", store=HashStore(), rank=1, world_size=4, **options)
        return made

    yield begin
    if dist.is_initialized():
        dist.destroy_process_group()


def test_the_group_of_all(job):
    starts = setup.world.starts
    whole, groups = job(timeout=timedelta(seconds=7), group_name="mine", device_id="device")
    assert (whole.rank, whole.size, whole.ranks, whole.timeout) == (1, 4, [0, 1, 2, 3], timedelta(seconds=7))
    assert whole.parent is None and whole.name == "mine" and setup.world.starts == starts + 1
    group = dist.group.WORLD
    assert group.bound_device_id == "device" and group.group_desc == "default_pg" and group.name() == "toy"
    assert groups() == [whole] and dist.get_backend() == "toy" and dist.get_pg_count() == 1
    part = dist.new_group([3, 1])
    assert groups() == [whole, part._backend]
    dist.destroy_process_group(part)
    assert part._backend.closed == [1] and not whole.closed and groups() == [whole]
    with pytest.raises(ValueError, match="has been destroyed"):
        dist.destroy_process_group(part)
    dist.destroy_process_group(dist.GroupMember.NON_GROUP_MEMBER)
    other = dist.new_group([1])
    assert type(other._backend).__name__ == "SingleProcess"  # a group of one needs no messages
    dist.destroy_process_group()
    assert whole.closed == [1] and not dist.is_initialized()


def test_timeouts(job):
    options = dist.ProcessGroup.Options("toy", timedelta(seconds=5))
    made = job(pg_options=options)
    assert made[0].timeout == timedelta(seconds=5)
    for given, wanted in (
        ({}, setup.default_pg_timeout),
        ({"pg_options": options}, timedelta(seconds=5)),
        ({"pg_options": options, "timeout": timedelta(seconds=2)}, timedelta(seconds=2)),
    ):
        assert dist.new_group([0, 1], **given)._backend.timeout == wanted
        assert dist.new_subgroups(2, **given)[0]._backend.timeout == wanted
        assert dist.split_group(None, [[0, 1], [2, 3]], **given)._backend.timeout == wanted
    with pytest.raises(TypeError, match="must be ProcessGroup.Options or None, not int"):
        dist.new_group([0, 1], pg_options=3)


def test_members_and_names(job):
    job()
    none = dist.GroupMember.NON_GROUP_MEMBER
    first = dist.new_group([3, 1], group_desc="some")
    assert first.group_name == "1" and first.group_desc == "some" and first._backend.ranks == [1, 3]
    assert (first._backend.rank, first._backend.parent) == (0, dist.group.WORLD._backend)
    assert dist.new_group([0, 2]) is none and dist.get_pg_count() == 3  # the others count it as well
    every = dist.new_group()
    assert every.group_name == "3" and every.group_desc == "undefined" and every.size() == 4
    assert dist.get_rank(first) == 0 and dist.get_world_size(none) == dist.get_rank(none) == -1
    assert dist.get_global_rank(first, 1) == 3 and dist.get_group_rank(first, 3) == 1
    with pytest.raises(ValueError, match="Group rank 2 is not part"):
        dist.get_global_rank(first, 2)
    with pytest.raises(ValueError, match="Global rank 0 is not part"):
        dist.get_group_rank(first, 0)
    local = [dist.new_group([1, 2], use_local_synchronization=True) for _ in range(2)]
    assert dist.new_group([0, 2], use_local_synchronization=True) is None and dist.get_pg_count() == 4
    assert len({g.group_name for g in local}) == 2 and len(local[0].group_name) == 40
    first.store.set("key", "a")
    assert not every.store.check(["key"]) and first._backend.store.get("key") == b"a"
    for wrong, text in (
        ([0, 1, 2, 3, 1], "less or equal"),
        ([4], "within the world_size"),
        ([1, 1], "must differ"),
    ):
        with pytest.raises(ValueError, match=text):
            dist.new_group(wrong)


def test_the_order_of_the_members(job):
    job()
    for options in ({}, {"sort_ranks": True}):
        assert dist.get_process_group_ranks(dist.new_group([3, 1, 0], **options)) == [0, 1, 3]
    given = [3, 1, 0]
    group = dist.new_group(given, sort_ranks=False)
    assert group._backend.ranks == dist.get_process_group_ranks(group) == given == [3, 1, 0]
    assert (group._backend.rank, dist.get_rank(group), dist.get_global_rank(group, 0)) == (1, 1, 3)
    assert dist.get_group_rank(group, 0) == 2
    names = [
        dist.new_group(r, use_local_synchronization=True, sort_ranks=False).group_name
        for r in ([1, 2], [2, 1])
    ]
    assert names[0] != names[1]
    # The parts of a group list its ranks, and have their order in it.
    part = dist.split_group(group, [[2, 1]])
    assert dist.get_process_group_ranks(part) == [1, 0] and part._backend.rank == 0
    assert given == [3, 1, 0]


def test_subgroups(job):
    job()
    own, groups = dist.new_subgroups(2, group_desc="pair")
    assert own.group_desc == "pair" and own._backend.ranks == [0, 1] and groups[0] is own
    assert groups[1] is dist.GroupMember.NON_GROUP_MEMBER
    own, groups = dist.new_subgroups_by_enumeration([[2, 3], [1, 0]])
    assert own is groups[1] and own._backend.ranks == [0, 1]
    with pytest.raises(ValueError, match="must be divisible"):
        dist.new_subgroups(3)
    own, groups = dist.new_subgroups(1, group=dist.new_group([3, 1]))
    assert dist.get_process_group_ranks(own) == [1] and len(groups) == 2
    own = dist.split_group(None, [[3, 1], [0, 2]], group_desc="part")
    assert own._backend.ranks == [1, 3] and own.group_desc == "part"
    inner = dist.split_group(own, [[0]])
    assert dist.get_process_group_ranks(inner) == [1]
    assert dist.split_group(own, [[1]]) is None


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"rank": -1, "world_size": 2}, "rank must be non-negative"),
        ({"rank": 0, "world_size": 0}, "world_size must be positive"),
        ({"rank": 2, "world_size": 2}, "rank is 2 and world_size 2"),
        ({"rank": 0, "world_size": 1, "init_method": "env://"}, "both init_method and store"),
    ],
)
def test_starts_that_are_refused(given, text):
    with pytest.raises(ValueError, match=text):
        dist.init_process_group("gloo", store=HashStore(), **given)
    assert not dist.is_initialized()
