"""The steps of checkpoints between three ranks that threads play: who computes, who gets what, and whose errors all raise."""

from __future__ import annotations

import io

import pytest

import msadapter as torch
import msadapter.distributed.checkpoint as dcp
from msadapter.distributed._shard.sharded_tensor import (
    Shard,
    ShardedTensor,
    ShardedTensorBase,
    ShardedTensorMetadata,
    TensorProperties,
)
from msadapter.distributed.checkpoint import (
    planner_helpers,
    staging,
    state_dict_loader,
    state_dict_saver,
    utils,
)
from msadapter.distributed.checkpoint.api import CheckpointException
from msadapter.distributed.checkpoint.metadata import MetadataIndex
from msadapter.distributed.checkpoint.planner import SavePlan
from tests.distributed.played import played

RANKS = (4, 6, 9)


class Objects:
    """Collectives of objects between played ranks. Roots are ranks of the job."""

    @staticmethod
    def broadcast_object_list(items, src, group):
        items[:] = group.line.exchange(group.me, list(items))[group._ranks.index(src)]

    @staticmethod
    def gather_object(value, found, dst, group):
        given = group.line.exchange(group.me, value)
        assert (found is not None) == (group._ranks[group.me] == dst)
        if found is not None:
            found[:] = given

    @staticmethod
    def all_gather_object(found, value, group):
        found[:] = group.line.exchange(group.me, value)

    @staticmethod
    def scatter_object_list(found, values, src, group):
        given = group.line.exchange(group.me, values)
        root = group._ranks.index(src)
        assert [v is not None for v in given] == [place == root for place in range(len(given))]
        found[0] = given[root][group.me]


@pytest.fixture
def objects(monkeypatch):
    monkeypatch.setattr(utils, "objects", Objects)
    monkeypatch.setattr(utils, "is_initialized", lambda: True)
    monkeypatch.setattr(utils, "get_global_rank", lambda group, rank: group._ranks[rank])
    monkeypatch.setattr(utils, "get_rank", lambda group: group.rank())
    monkeypatch.setattr(utils, "get_world_size", lambda group: group.size())


def test_who_coordinates(objects, monkeypatch):
    arrived = []
    monkeypatch.setattr(utils, "barrier", lambda group: arrived.append(group.me))

    def program(group):
        together = utils._DistWrapper(group, True, 1)
        assert together.coordinator_rank == 1 and together.global_coordinator_rank == 6
        assert (together.get_rank(), together.get_world_size()) == (group.me, 3)
        together.barrier()
        return (
            together.is_coordinator,
            together.broadcast_object(group.me),
            together.gather_object(group.me),
            together.all_gather_object(group.me),
            together.scatter_object([f"of {group.me} for {k}" for k in range(3)]),
        )

    assert played(program, RANKS) == [
        (False, 1, None, [0, 1, 2], "of 1 for 0"),
        (True, 1, [0, 1, 2], [0, 1, 2], "of 1 for 1"),
        (False, 1, None, [0, 1, 2], "of 1 for 2"),
    ]
    assert sorted(arrived) == [0, 1, 2]


def test_a_process_by_itself(objects, monkeypatch):
    monkeypatch.setattr(utils, "barrier", pytest.fail)
    together = utils._DistWrapper(None, False, 0)
    together.barrier()
    assert together.is_coordinator and together.global_coordinator_rank == together.coordinator_rank == 0
    assert (together.get_rank(), together.get_world_size()) == (0, 1)
    assert together.broadcast_object(3) == 3 and together.gather_object(3) == [3]
    assert together.all_gather_object(3) == [3] and together.scatter_object([3]) == 3
    assert not utils._DistWrapper(None, False, 2).is_coordinator
    monkeypatch.setattr(utils, "is_initialized", lambda: False)
    assert utils._DistWrapper(None, True, 0).get_world_size() == 1


def test_results_of_steps(objects):
    def program(group):
        together, own = utils._DistWrapper(group, True, 1), lambda: group.me + 1
        return (
            together.reduce_scatter("plan", own, lambda found: [10 * x for x in found]),
            together.all_reduce("write", own, sum),
            together.all_gather("read", own),
            together.broadcast("name", own),
        )

    assert played(program, RANKS) == [(10 * (me + 1), 6, [1, 2, 3], 2) for me in range(3)]


def failing(*args):
    raise ValueError("what has failed")


@pytest.mark.parametrize("step, ranks", [
    (lambda t, g: t.reduce_scatter("plan", (lambda: 1) if g.me == 1 else failing, list), {0, 2}),
    (lambda t, g: t.reduce_scatter("plan", lambda: 1, failing), {1}),
    (lambda t, g: t.all_reduce("plan", failing if g.me == 2 else lambda: 1, sum), {2}),
    (lambda t, g: t.all_reduce("plan", lambda: 1, failing), {1}),
    (lambda t, g: t.all_gather("plan", (lambda: 1) if g.me else failing), {0}),
    (lambda t, g: t.broadcast("plan", failing), {1}),
])  # fmt: skip
def test_an_error_of_a_rank_is_raised_on_all(objects, step, ranks):
    def program(group):
        with pytest.raises(CheckpointException, match="what has failed") as caught:
            step(utils._DistWrapper(group, True, 1), group)
        return caught.value

    for error in played(program, RANKS):
        assert set(error.failures) == ranks and error.args[0] == "plan"
        assert all(type(failure) is ValueError for failure, _ in error.failures.values())


def test_an_error_of_those_that_are_not_asked_does_not_count(objects):
    """Only the coordinator computes what it broadcasts."""
    program = lambda g: utils._DistWrapper(g, True, 1).broadcast("n", failing if g.me != 1 else lambda: 5)  # noqa: E731
    assert played(program, RANKS) == [5, 5, 5]


def test_old_forms_name_the_coordinator(monkeypatch):
    """They hand on the rank of the coordinator, and whether other processes take part."""
    given = []

    class Stop(Exception):
        pass

    def wrapper(group, use_dist, coordinator_rank):
        given.append((group, use_dist, coordinator_rank))
        raise Stop

    class Storage:
        resets = 0

        def reset(self):
            self.resets += 1

    for module, name in ((state_dict_loader, "load_state_dict"), (state_dict_saver, "save_state_dict")):
        monkeypatch.setattr(module, "_DistWrapper", wrapper)
        for arguments, expected in (
            ({}, (None, True, 0)),
            ({"process_group": "g", "coordinator_rank": 2}, ("g", True, 2)),
            ({"no_dist": True}, (None, False, 0)),
        ):
            storage = Storage()
            with pytest.raises(Stop), pytest.warns(FutureWarning, match=f"'{name}' is deprecated"):
                getattr(module, name)({}, storage, **arguments)
            assert given.pop() == expected and storage.resets == 1


# ---- plans
def sharded(rows=(0, 3)):
    """A tensor of six rows of which this process has shards of three rows."""
    shards = [
        Shard.from_tensor_and_offsets(torch.arange(6.0).reshape(3, 2) + row, [row, 0], 0) for row in rows
    ]
    properties = TensorProperties(dtype=torch.float32)
    whole = ShardedTensorMetadata([s.metadata for s in shards], torch.Size([6, 2]), properties)
    return ShardedTensor(whole, shards)


def test_programs_recognize_sharded_tensors_by_their_base():
    """Megatron's energon asks so for the tensors of a program."""
    assert isinstance(sharded(), ShardedTensorBase) and not isinstance(torch.ones(2), ShardedTensorBase)
    with pytest.raises(
        NotImplementedError, match="ShardedTensorBase: sharding specifications are not supported"
    ):
        ShardedTensorBase(None, 2, 3)


def test_states_are_copied_before_they_are_saved_aside():
    plain = torch.ones(2, requires_grad=True)
    given = {"t": plain, "s": sharded(), "l": [plain, (plain, {"a": [1]})], "o": {"x"}}
    made = staging.staged(given)
    assert made["t"].tolist() == [1, 1] and not made["t"].requires_grad
    assert type(made["l"]) is list and type(made["l"][1]) is tuple and made["l"][1][1] == {"a": [1]}
    copies = [
        (given["t"], made["t"]),
        (given["l"][1][0], made["l"][1][0]),
        *(
            (a.tensor, b.tensor)
            for a, b in zip(given["s"].local_shards(), made["s"].local_shards(), strict=True)
        ),
    ]
    assert len(copies) == 4
    for own, other in copies:
        assert torch.equal(own, other) and own.data_ptr() != other.data_ptr()
    assert made["o"] == {"x"} and made["o"] is not given["o"]
    assert made["s"].metadata() is given["s"].metadata()
    assert [s.metadata for s in made["s"].local_shards()] == [s.metadata for s in given["s"].local_shards()]


def test_sharded_tensors_in_a_state_saved_aside(tmp_path):
    dcp.async_save({"s": sharded()}, checkpoint_id=tmp_path).result()
    metadata = dcp.FileSystemReader(tmp_path).read_metadata().state_dict_metadata["s"]
    assert metadata.size == torch.Size([6, 2]) and metadata.properties.dtype is torch.float32
    assert [tuple(chunk.offsets) for chunk in metadata.chunks] == [(0, 0), (3, 0)]
    found = {"s": sharded()}
    for shard in found["s"].local_shards():
        shard.tensor.zero_()
    dcp.load(found, checkpoint_id=tmp_path)
    for a, b in zip(found["s"].local_shards(), sharded().local_shards(), strict=True):
        assert torch.equal(a.tensor, b.tensor)
    whole = {"s": torch.zeros(6, 2)}
    dcp.load(whole, checkpoint_id=tmp_path)
    assert torch.equal(whole["s"], torch.cat([s.tensor for s in sharded().local_shards()]))


def test_objects_of_indices():
    size = torch.Size
    state = {"s": sharded(), "t": torch.ones(2), "o": 3}
    find = planner_helpers.find_state_dict_object
    assert find(state, MetadataIndex("s", size([3, 0]))).tolist()[0] == [3, 4]
    assert find(state, MetadataIndex("s")).tolist()[0] == [0, 1]
    assert find(state, MetadataIndex("t", size([0]))) is find(state, MetadataIndex("t")) is state["t"]
    assert find(state, MetadataIndex("o")) == 3
    for index, said in (
        (MetadataIndex("s", size([1, 0])), "Could not find shard at"),
        (MetadataIndex("t", size([1])), "is not a ShardedTensor"),
        (MetadataIndex("o", size([0])), "is not a ShardedTensor"),
        (MetadataIndex("x"), "Could not find FQN: 'x'"),
    ):
        with pytest.raises(ValueError, match=said):
            find(state, index)


def test_who_writes_what_several_ranks_have():
    def plan(**sizes):
        items = [i for n, k in sizes.items() for i in planner_helpers._create_write_items(n, torch.ones(k))]
        return SavePlan([*items, *planner_helpers._create_write_items("o", io.BytesIO(b"abc"))])

    def names(*args, **kwargs):
        found = planner_helpers.dedup_save_plans(*args, **kwargs)
        return [[item.index.fqn for item in plan.items] for plan in found]

    plans = [plan(a=8, b=3, c=2), plan(b=3, c=2), plan(c=2, d=1)]
    # `a` to 0 (32 bytes), `b` to 1 (12), `c` to 2 (8), then the object to who has the least to write
    assert names(plans) == [["a"], ["b"], ["c", "d", "o"]] or names(plans) == [["a"], ["b"], ["c", "o", "d"]]
    assert names(plans, True) == [["a", "b", "c", "o"], [], ["d"]]
    assert names(plans, save_to_lowest_rank=True) == names(plans, True)
    assert planner_helpers._create_write_items("o", io.BytesIO(b"abc"))[0].bytes_io_data.nbytes == 3
    assert planner_helpers._create_write_items("o", 3)[0].bytes_io_data is None
