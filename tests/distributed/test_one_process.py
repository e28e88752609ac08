"""What torch.distributed promises to a job of one process, in this process: groups, handles, checkpoints."""

from __future__ import annotations

import copy
import io
import logging
import pickle
from datetime import timedelta

import pytest

import msadapter as torch
import msadapter.distributed as dist
import msadapter.distributed.checkpoint as dcp
from msadapter import nn
from msadapter.distributed import debug, distributed_c10d, setup, work
from msadapter.distributed.checkpoint import (
    _nested_dict,
    _traverse,
    default_planner,
    filesystem,
    format_utils,
    state_dict_loader,
    state_dict_saver,
)
from msadapter.distributed.checkpoint import logger as checkpoint_logger
from msadapter.distributed.checkpoint import planner_helpers as helpers
from msadapter.distributed.checkpoint import state_dict as sd
from msadapter.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from msadapter.distributed.checkpoint.planner import SavePlan, TensorWriteData, WriteItem, WriteItemType
from msadapter.distributed.checkpoint.utils import CheckpointException, _DistWrapper
from msadapter.distributed.reduce_op import ReduceOp


# ---- names, ranks and timeouts
def test_what_is_available(monkeypatch):
    assert (
        dist.is_available()
        and dist.is_mpi_available()
        and dist.is_nccl_available()
        and dist.is_gloo_available()
    )
    assert not setup.is_ucc_available() and not setup.is_xccl_available()
    assert [dist.is_backend_available(b) for b in ("gloo", "NCCL", "hccl", "mpi", "ucc")] == [True] * 4 + [
        False
    ]
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert dist.is_torchelastic_launched() is False
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "a")
    assert dist.is_torchelastic_launched() is True
    monkeypatch.setenv("LOCAL_RANK", "3")
    assert dist.get_node_local_rank() == 3 and dist.get_node_local_rank(1) == 3
    monkeypatch.delenv("LOCAL_RANK")
    assert dist.get_node_local_rank("1") == 1 and dist.get_node_local_rank(0) == 0
    with pytest.raises(RuntimeError, match="LOCAL_RANK is not in the environment"):
        dist.get_node_local_rank()
    assert dist.get_default_backend_for_device("cpu") == "gloo"
    with pytest.raises(ValueError, match="not registered for device : other"):
        dist.get_default_backend_for_device("other:1")
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "detail")
    assert dist.get_debug_level().name == "DETAIL"
    monkeypatch.delenv("TORCH_DISTRIBUTED_DEBUG")
    assert dist.get_debug_level().name == "OFF"
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "everything")
    for function in (dist.get_debug_level, dist.set_debug_level_from_env):
        with pytest.raises(
            ValueError, match="The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL."
        ):
            function()
    monkeypatch.delenv("TORCH_DIST_INIT_BARRIER", raising=False)
    assert distributed_c10d._is_barrier_after_init() == 0
    monkeypatch.setenv("TORCH_DIST_INIT_BARRIER", "1")
    assert distributed_c10d._is_barrier_after_init() == 1


def test_the_level_of_checks_that_a_program_sets(monkeypatch):
    monkeypatch.setattr(debug, "_chosen", None)
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "INFO")
    assert not debug.detail()
    dist.set_debug_level(dist.DebugLevel.DETAIL)
    assert dist.get_debug_level() is dist.DebugLevel.DETAIL and debug.detail()
    with pytest.raises(TypeError, match="must be a DebugLevel, not str"):
        dist.set_debug_level("OFF")
    assert debug.detail()
    dist.set_debug_level_from_env()
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    assert dist.get_debug_level() is dist.DebugLevel.INFO and not debug.detail()
    assert [level.value for level in dist.DebugLevel] == [0, 1, 2]


def test_reductions_of_complex_numbers():
    ops = dist.ReduceOp
    found = {op: dist.supports_complex(getattr(ops, op)) for op in ops.RedOpType.__members__}
    wanted = {"SUM": True, "AVG": True, "PREMUL_SUM": True, "UNUSED": True}
    assert found == dict.fromkeys(ops.RedOpType.__members__, False) | wanted


def test_groups_of_the_job(world):
    group = dist.new_group([0], timeout=timedelta(seconds=9))
    assert group.timeout == timedelta(seconds=9)
    distributed_c10d._set_pg_timeout(timedelta(seconds=7), group)
    assert group.timeout == group._backend.timeout == timedelta(seconds=7)
    before = dist.group.WORLD.timeout
    distributed_c10d._set_pg_timeout(before)
    assert dist.group.WORLD.timeout == before
    with pytest.raises(TypeError, match="must be of type timedelta"):
        distributed_c10d._set_pg_timeout(7, group)
    with pytest.raises(ValueError, match="Invalid process group"):
        distributed_c10d._set_pg_timeout(before, dist.GroupMember.NON_GROUP_MEMBER)
    assert distributed_c10d._rank_not_in_group(None) is False
    assert distributed_c10d._get_default_store() is dist.group.WORLD.store
    assert distributed_c10d._get_pg_default_device().type == "cpu"
    for call, text in (
        (lambda: dist.get_global_rank(group, 1), "Group rank 1"),
        (lambda: dist.get_global_rank(group, -1), "Group rank -1"),
        (lambda: dist.get_group_rank(group, 1), "Global rank 1"),
        (lambda: dist.new_subgroups_by_enumeration([]), "cannot be empty"),
        (lambda: dist.new_subgroups_by_enumeration([[0], [0]]), "Rank 0 has appeared in two"),
    ):
        with pytest.raises(ValueError, match=text):
            call()
    known = distributed_c10d._world
    assert known.pg_group_ranks[group] == {0: 0} and known.pg_names[group] == group.group_name
    assert known.pg_map[group] == (dist.get_backend(group), group.store)
    assert known.pg_to_tag[group] == f"ptd:{group.group_name}"
    own, every = dist.new_subgroups_by_enumeration([[0]])
    assert every == [own] and dist.get_process_group_ranks(own) == [0]
    dist.destroy_process_group(own)
    assert not any(
        own in table for table in (known.pg_map, known.pg_names, known.pg_group_ranks, known.pg_to_tag)
    )
    with pytest.raises(ValueError, match="not registered"):
        dist.get_group_rank(own, 0)
    with pytest.raises(ValueError, match="has been destroyed"):
        dist.destroy_process_group(own)
    dist.destroy_process_group(dist.GroupMember.NON_GROUP_MEMBER)
    assert dist.is_initialized()


def test_reductions_are_values():
    assert int(ReduceOp.SUM) == 0 and ReduceOp(ReduceOp.MAX) == ReduceOp.MAX and ReduceOp.MAX != ReduceOp.MIN
    assert ReduceOp.SUM != "SUM" and ReduceOp(0) != 0.0 and int(ReduceOp.BXOR) == 7
    assert len({ReduceOp.SUM, ReduceOp(0), ReduceOp.AVG}) == 2 and repr(ReduceOp.AVG) == "<RedOpType.AVG: 1>"
    premultiplied = pickle.loads(pickle.dumps(dist._make_nccl_premul_sum(0.5)))
    assert premultiplied == ReduceOp.PREMUL_SUM and premultiplied.factor == 0.5
    assert (dist.reduce_op.SUM, dist.reduce_op.MIN) == (ReduceOp.SUM, ReduceOp.MIN)


# ---- handles
def test_a_work_ends_once():
    calls = []
    one = work.Work([3], calls.append)
    assert not one.is_completed() and not one.is_success() and one.exception() is None
    assert one.wait(5) is True and one.wait() is True and calls == [5]
    assert one.is_completed() and one.is_success() and one.result() == [3] and one.source_rank() == -1

    def fails(timeout):
        raise ValueError("broken")

    bad = work.Work([], fails)
    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            bad.wait()
    assert bad.is_completed() and not bad.is_success() and str(bad.exception()) == "broken"
    gone = work.Work([], fails)
    gone.abort()
    gone.synchronize()
    assert gone.is_success()


def test_futures_of_works():
    ready, calls = [], []

    def compute():
        calls.append(1)
        return [4]

    future = work._LazyFuture(compute, lambda: bool(ready))
    assert future.done() is False and not calls
    after = future.then(lambda f: f.value()[0] + 1)
    assert after.wait() == 5 and calls == [1]
    assert future.done() and future.value() == [4] and future.wait() == [4] and calls == [1]
    seen = []
    future.add_done_callback(lambda f: seen.append(f.value()))
    other = work._LazyFuture(compute, lambda: True)
    other.add_done_callback(lambda f: seen.append(f.value()))
    assert seen == [[4], [4]] and other.done() and calls == [1, 1]
    ready.append(1)
    polled = work._LazyFuture(compute, lambda: bool(ready))
    assert polled.done() and calls == [1, 1, 1]

    def fails():
        raise KeyError("x")

    broken = work._LazyFuture(fails, lambda: True)
    assert broken.done()
    with pytest.raises(KeyError):
        broken.wait()


# ---- checkpoints
class Counter:
    def __init__(self, value=0):
        self.value = value

    def state_dict(self):
        return {"value": self.value, "t": torch.full((2,), float(self.value))}

    def load_state_dict(self, state):
        self.value, self.t = state["value"], state["t"]


STATE = {"m": {"w": torch.arange(6.0).reshape(2, 3), "l": [1, {"a": torch.ones(2)}]}, "n": (1, 2), "step": 3}


def test_a_checkpoint_and_a_file_hold_the_same(tmp_path):
    torch.save(STATE, tmp_path / "file")
    format_utils.torch_save_to_dcp(tmp_path / "file", tmp_path / "new/folder")
    format_utils.dcp_to_torch_save(tmp_path / "new/folder", tmp_path / "back")
    back = torch.load(tmp_path / "back", weights_only=False)
    assert torch.equal(back["m"]["w"], STATE["m"]["w"]) and back["n"] == (1, 2) and back["step"] == 3
    assert back["m"]["l"][0] == 1 and torch.equal(back["m"]["l"][1]["a"], torch.ones(2))
    metadata = dcp.FileSystemReader(tmp_path / "new/folder").read_metadata()
    for keys, want in (
        ({"m.w"}, {"m"}),
        ({"n"}, {"n"}),
        ({"m"}, {"m"}),
        ({"m.l"}, {"m"}),
        ({"l"}, set()),
        (set(), set()),
    ):
        found: dict = {}
        planner = default_planner._EmptyStateDictLoadPlanner(keys)
        planner.set_up_planner(found, metadata)
        assert set(found) == want, keys
    planner = default_planner._EmptyStateDictLoadPlanner()
    with pytest.raises(AssertionError, match="must be empty"):
        planner.set_up_planner({"a": 1}, metadata)


def test_the_form_without_stateful_objects(tmp_path):
    """MindSpeed-MM's converter writes its files with it."""
    saved = {"model": {"w": torch.arange(4.0)}, "checkpoint_version": 3.0}
    assert state_dict_saver._save_state_dict(saved, dcp.FileSystemWriter(tmp_path), no_dist=True) is not None
    found = {}
    state_dict_loader._load_state_dict(
        found,
        dcp.FileSystemReader(tmp_path),
        no_dist=True,
        planner=default_planner._EmptyStateDictLoadPlanner(),
    )
    assert torch.equal(found["model"]["w"], saved["model"]["w"]) and found["checkpoint_version"] == 3.0
    with pytest.raises(NotImplementedError, match="use_collectives=False"):
        state_dict_saver._save_state_dict(saved, dcp.FileSystemWriter(tmp_path), use_collectives=False)


@pytest.mark.parametrize("log_exceptions", [True, False])
def test_events_of_a_checkpoint(log_exceptions):
    events = []
    handler = logging.Handler()
    handler.emit = lambda record: events.append(record.msg)
    checkpoint_logger._dcp_logger.addHandler(handler)

    @checkpoint_logger._dcp_method_logger(log_exceptions, checkpoint_id="place")
    def step(number, planner=None):
        return 1 // number

    try:
        assert step(1, planner=dcp.DefaultSavePlanner()) == 1
        with pytest.raises(ZeroDivisionError):
            step(0)
    finally:
        checkpoint_logger._dcp_logger.removeHandler(handler)
    assert [event["event"] for event in events] == ["start", "end", "start", *["exception"] * log_exceptions]
    assert {(event["func_name"], event["checkpoint_id"]) for event in events} == {("step", "place")}
    assert events[1]["times_spent"] == events[1]["time"] - events[0]["time"] >= 0
    assert events[0]["planner"] == "DefaultSavePlanner" and events[0]["uuid"] == events[1]["uuid"]


@pytest.mark.parametrize("flat", [True, False])
def test_old_names_and_plain_keys(tmp_path, flat):
    state = {"w": torch.arange(4.0), "k": "text"} | ({"d": {"x": torch.ones(1)}} if flat else {})
    writer = dcp.FileSystemWriter(tmp_path)
    with pytest.warns(FutureWarning, match="save_state_dict"):
        dcp.save_state_dict(
            state, writer, no_dist=True, planner=dcp.DefaultSavePlanner(flatten_state_dict=flat)
        )
    read = {"w": torch.zeros(4), "k": ""} | ({"d": {"x": torch.zeros(1)}} if flat else {})
    with pytest.warns(FutureWarning, match="load_state_dict"):
        dcp.load_state_dict(
            read,
            dcp.FileSystemReader(tmp_path),
            no_dist=True,
            planner=dcp.DefaultLoadPlanner(flatten_state_dict=flat),
        )
    assert torch.equal(read["w"], state["w"]) and read["k"] == "text"
    assert not flat or read["d"]["x"].item() == 1
    read = {"w": torch.zeros(4), "absent": torch.zeros(1)}
    with pytest.raises(CheckpointException, match="Missing key"):
        dcp.load(
            read,
            checkpoint_id=tmp_path,
            no_dist=True,
            planner=dcp.DefaultLoadPlanner(flatten_state_dict=flat),
        )
    partial = dcp.DefaultLoadPlanner(flatten_state_dict=flat, allow_partial_load=True)
    dcp.load(read, checkpoint_id=tmp_path, no_dist=True, planner=partial)
    assert read["absent"].item() == 0 and torch.equal(read["w"], state["w"])
    with pytest.raises(RuntimeError, match="checkpoint_id"):
        dcp.load(read)


def test_objects_with_a_state_and_asynchronous_saves(tmp_path, world, torch_by_name):
    dcp.save({"c": Counter(5), "l": [torch.ones(2), (torch.zeros(1),)]}, checkpoint_id=tmp_path / "a")
    one, state = Counter(), {"l": [torch.zeros(2), (torch.ones(1),)]}
    dcp.load({"c": one} | state, checkpoint_id=tmp_path / "a")
    assert one.value == 5 and one.t.tolist() == [5, 5]
    t = torch.ones(3)
    future = dcp.async_save({"t": t, "l": [t, (t,)], "o": [1]}, checkpoint_id=tmp_path / "b")
    t.zero_()
    future.result()
    read = {"t": torch.zeros(3), "l": [torch.zeros(3), None], "o": None}
    dcp.load(read, checkpoint_id=tmp_path / "b", planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert read["t"].tolist() == [1, 1, 1] and read["l"][0].tolist() == [1, 1, 1] and read["o"] == [1]
    (tmp_path / "file").write_text("")
    with pytest.raises((OSError, RuntimeError, CheckpointException)):
        dcp.async_save({"t": t}, checkpoint_id=tmp_path / "file").result()


def item(name, sizes, kind=WriteItemType.SHARD, dtype=torch.float32):
    if kind is WriteItemType.BYTE_IO:
        return WriteItem(MetadataIndex(name), kind)
    chunk = ChunkStorageMetadata(torch.Size([0] * len(sizes)), torch.Size(sizes))
    data = TensorWriteData(chunk, TensorProperties(dtype=dtype), torch.Size(sizes))
    return WriteItem(MetadataIndex(name, chunk.offsets), kind, tensor_data=data)


def test_files_of_about_equal_size():
    given = {
        "a": ((2, 3), torch.float32),
        "b": ((10,), torch.float64),
        "c": ((9,), torch.float64),
        "d": ((7,), torch.int8),
    }
    tensors = [item(name, sizes, dtype=dtype) for name, (sizes, dtype) in given.items()]
    objects = [item(n, (), WriteItemType.BYTE_IO) for n in "xyz"]
    assert [filesystem._item_size(i) for i in tensors] == [24, 80, 72, 7]
    split = filesystem._split_by_size_and_type(2, [*objects, *tensors])
    assert [[i.index.fqn for i in part] for part in split] == [["x", "z", "b", "d"], ["y", "c", "a"]]
    assert filesystem._split_by_size_and_type(1, tensors) == [tensors]


def test_who_writes_what_several_have():
    def plans():
        return [SavePlan([item("big", (9,)), item("small", (1,)), item("own0", (5,))]),
                SavePlan([item("big", (9,)), item("small", (1,)), item("own1", (2,))])]  # fmt: skip

    names = lambda found: [[i.index.fqn for i in p.items] for p in found]  # noqa: E731
    assert names(helpers.dedup_save_plans(plans())) == [["big", "own0"], ["small", "own1"]]
    assert names(helpers.dedup_save_plans(plans(), True)) == [["big", "small", "own0"], ["own1"]]
    made = default_planner.create_default_global_save_plan(helpers.dedup_save_plans(plans()))
    assert [c.sizes for c in made[1].state_dict_metadata["big"].chunks] == [torch.Size([9])]
    with pytest.raises(AssertionError, match="written twice"):
        default_planner.create_default_global_save_plan(
            [SavePlan([item("t", (1,), WriteItemType.TENSOR), item("t", (1,), WriteItemType.TENSOR)])]
        )
    shards = [item("s", (2,)), item("s", (2,))]
    for hints, want in ((True, [0, 1]), (False, [None, None])):
        (plan,), metadata = default_planner.create_default_global_save_plan([SavePlan(shards)], hints)
        assert [i.index.index for i in plan.items] == want and len(
            metadata.state_dict_metadata["s"].chunks
        ) == 2
    assert [
        i.index.fqn for i in helpers._create_default_metadata_only_plan({"t": torch.ones(1), "o": 1}).items
    ] == ["t", "o"]


def test_what_is_found_for_an_item():
    t = torch.ones(2)
    assert helpers.find_state_dict_object({"t": t}, MetadataIndex("t")) is t
    assert helpers.find_state_dict_object({"t": t}, MetadataIndex("t", [0])) is t
    for index, text in (
        (MetadataIndex("u"), "Could not find FQN"),
        (MetadataIndex("t", [1]), "not a ShardedTensor"),
    ):
        with pytest.raises(ValueError, match=text):
            helpers.find_state_dict_object({"t": t}, index)
    with pytest.raises(ValueError, match="Invalid checkpoint metadata"):
        helpers._create_read_items("t", TensorStorageMetadata(TensorProperties(), torch.Size([2]), []), 3)
    known = helpers._create_write_item_for_bytesio("b", io.BytesIO(b"abc"))
    assert (
        known.bytes_io_data.nbytes == 3
        and helpers._create_write_item_for_bytesio("b", 3).bytes_io_data is None
    )
    part = default_planner.narrow_tensor_by_index(torch.arange(12.0).reshape(3, 4), (1, 0), (2, 4))
    assert torch.equal(part, torch.arange(4.0, 12).reshape(2, 4))


def test_paths_in_nested_states():
    nested: dict = {}
    _traverse.set_element(nested, ("a", 2, "b"), 1)
    _traverse.set_element(nested, ("a", 0), 2)
    _traverse.set_element(nested, ("c", 1), 3)
    _traverse.set_element(nested, ("a", 2, "d"), 4)
    assert nested == {"a": [2, None, {"b": 1, "d": 4}], "c": [None, 3]}
    get = _traverse.get_element
    assert get(nested, ("a", 2, "b")) == 1 and get(nested, ("c", 1)) == 3 and get(nested, ()) is nested
    assert [get(nested, path, "no") for path in (("a", 3), ("b",), ("c", "x"), ("a", 0, "b"), (0,))] == [
        "no"
    ] * 5
    flat, paths = _nested_dict.flatten_state_dict({"a": {"b": 1}, "l": [{"c": 2}, [3]], "p": [4, 5]})
    assert flat == {"a.b": 1, "l.0.c": 2, "l.1": [3], "p": [4, 5]} and paths["l.0.c"] == ("l", 0, "c")
    assert _nested_dict.unflatten_state_dict(flat, paths) == {
        "a": {"b": 1},
        "l": [{"c": 2}, [3]],
        "p": [4, 5],
    }
    with pytest.raises(ValueError, match="duplicated flatten key a.b"):
        _nested_dict.flatten_state_dict({"a": {"b": 1}, "a.b": 2})
    seen = []
    _traverse.traverse_state_dict({"l": [[torch.ones(1)], 2], "q": [[1]]}, lambda p, v: seen.append(p))
    assert seen == [("l", 0, 0), ("l", 1), ("q",)]


@pytest.mark.parametrize("alone", [True, False])
def test_steps_of_all_processes(world, alone):
    together = _DistWrapper(None, not alone, 0)
    assert (together.get_rank(), together.get_world_size(), together.is_coordinator) == (0, 1, True)
    assert together.reduce_scatter("s", lambda: 2, lambda given: [given[0] + 1]) == 3
    assert together.all_reduce("s", lambda: 2, lambda given: given[0] * 5) == 10
    assert together.all_gather("s", lambda: 2) == [2] and together.broadcast("s", lambda: 7) == 7
    assert together.gather_object(1) == [1] and together.scatter_object([4]) == 4
    together.barrier()

    def fails(*_):
        raise ValueError("inside")

    for call in (
        lambda: together.reduce_scatter("s", fails, lambda given: given),
        lambda: together.reduce_scatter("s", lambda: 1, fails),
        lambda: together.all_reduce("s", fails, lambda given: given),
        lambda: together.all_reduce("s", lambda: 1, fails),
        lambda: together.all_gather("s", fails),
        lambda: together.broadcast("s", fails),
    ):
        with pytest.raises(CheckpointException, match="inside") as caught:
            call()
        assert set(caught.value.failures) == {0}


# ---- states of models and optimizers
def trained(frozen=False, kind=torch.optim.Adam, **options):
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    if frozen:
        model[0].bias.requires_grad_(False)
    optimizer = kind(model.parameters(), **{"lr": 0.1} | options)
    model(torch.ones(4, 3)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    return model, optimizer


def test_options_of_state_dicts(world):
    model, optimizer = trained(frozen=True)
    skip = sd.StateDictOptions(ignore_frozen_params=True)
    assert "0.bias" in sd.get_model_state_dict(model) and "0.bias" not in sd.get_model_state_dict(
        model, options=skip
    )
    state = sd.get_optimizer_state_dict(model, optimizer, options=skip)
    assert set(state["state"]) == {"0.weight", "1.weight", "1.bias"}
    assert state["param_groups"][0]["params"] == ["0.weight", "1.weight", "1.bias"]
    assert state["param_groups"][0]["lr"] == 0.1
    assert "0.bias" in sd.get_optimizer_state_dict(model, optimizer)["param_groups"][0]["params"]
    with pytest.raises(ValueError, match="full_state_dict must be True"):
        sd.StateDictOptions(broadcast_from_rank0=True)
    for function in (sd.get_model_state_dict, lambda m, **k: sd.get_optimizer_state_dict(m, optimizer, **k)):
        with pytest.raises(NotImplementedError, match="submodules"):
            function(model, submodules={model[0]})
    both = sd.get_state_dict(model, optimizer)
    assert list(both[0]) == list(model.state_dict()) and both[1]["state"].keys() == state["state"].keys()
    assert sd.get_state_dict(model, [])[1] == {}


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("kind, options", [
    (torch.optim.Adam, {"amsgrad": True}), (torch.optim.SGD, {"momentum": 0.9}), (torch.optim.Adam, {"lr": torch.tensor(0.1)}),
])  # fmt: skip
def test_states_go_round(world, flat, kind, options):
    model, optimizer = trained(kind=kind, **options)
    chosen = sd.StateDictOptions(flatten_optimizer_state_dict=flat)
    whole = sd.get_state_dict(model, optimizer, options=chosen)
    assert flat == ("state" not in whole[1])
    torch.manual_seed(9)
    fresh = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2))
    start = copy.deepcopy(fresh.state_dict())
    other = kind(fresh.parameters(), **options | {"lr": torch.tensor(0.7) if "lr" in options else 0.7})
    sd._init_optim_state(other)  # a step of rate 0, which leaves the parameters and the rate alone
    assert all(torch.equal(start[k], v) for k, v in fresh.state_dict().items())
    assert float(other.param_groups[0]["lr"]) == pytest.approx(0.7) and all(
        p.grad is None for p in fresh.parameters()
    )
    sd.set_state_dict(fresh, other, model_state_dict=whole[0], optim_state_dict=whole[1], options=chosen)
    assert all(torch.equal(v, fresh.state_dict()[k]) for k, v in model.state_dict().items())
    assert float(other.param_groups[0]["lr"]) == pytest.approx(0.1)
    first, second = optimizer.state_dict()["state"], other.state_dict()["state"]
    for i, values in first.items():
        for key, value in values.items():
            same = (
                torch.equal(value, second[i][key])
                if isinstance(value, torch.Tensor)
                else value == second[i][key]
            )
            assert same, (i, key)


def test_missing_states_and_replaced_methods(world):
    model, optimizer = trained()
    state = sd.get_optimizer_state_dict(model, optimizer)
    del state["state"]["1.bias"]
    with pytest.raises(RuntimeError, match=r"Missing optimizer state for parameter '1.bias'"):
        sd.set_optimizer_state_dict(model, optimizer, state)
    for options in (sd.StateDictOptions(strict=False), sd.StateDictOptions(ignore_frozen_params=True)):
        sd.set_optimizer_state_dict(model, optimizer, state, options=options)
    model, optimizer = trained()
    twin, other = copy.deepcopy(model), torch.optim.Adam(model.parameters(), 0.3)
    sd._patch_model_state_dict(model)
    sd._patch_optimizer_state_dict(model, optimizers=optimizer)
    assert list(model.state_dict()) == list(twin.state_dict())
    kept = optimizer.state_dict()
    assert set(kept["state"]) == {"0.weight", "0.bias", "1.weight", "1.bias"}
    result = model.load_state_dict({k: v + 1 for k, v in twin.state_dict().items()})
    assert result.missing_keys == [] and torch.equal(model[0].weight, twin[0].weight + 1)
    sd._patch_optimizer_state_dict(model, optimizers=[other])
    other.load_state_dict(kept)
    assert other.param_groups[0]["lr"] == 0.1
    assert sd._fqn("module._orig_mod.a._fsdp_wrapped_module.b") == "a.b" and sd._fqn("module") == "module"


# ---- arguments
def test_arguments_that_collectives_refuse(world):
    t, wide, d = torch.ones(2), torch.ones(3), torch.ones(2).double()
    refused = {
        ValueError: (
            (lambda: dist.broadcast(t, 0, group_src=0), "both group_src and src"),
            (lambda: dist.gather(t, [t], 0, group_dst=0), "both group_dst and dst"),
            (lambda: dist.gather(t), "specified on destination rank"),
            (lambda: dist.scatter(t), "specified on source rank"),
            (lambda: dist.gather(t, [t, t]), "gather: gather_list"),
            (lambda: dist.scatter(t, [t, t]), "scatter: scatter_list"),
            (lambda: dist.reduce_scatter(t, [t, t]), "reduce_scatter: input_list"),
            (lambda: dist.all_to_all([t], [t, t]), "all_to_all: a list"),
            (lambda: dist.all_to_all([t, t], [t]), "all_to_all: a list"),
            (lambda: dist.all_gather([t, t], t), "all_gather: the output list"),
            (lambda: dist.all_gather([d], t), "dtype"),
            (lambda: dist.all_gather_into_tensor(wide, t), "world_size times input"),
            (lambda: dist.reduce_scatter_tensor(wide, t), "times world size"),
            (lambda: dist.scatter_object_list([], [1]), "scatter_object_output_list"),
        ),
        TypeError: (
            (lambda: dist.gather(t, [3]), "gather_list"),
            (lambda: dist.scatter(t, [3]), "scatter_list"),
            (lambda: dist.reduce_scatter(t, [3]), "input_list"),
            (lambda: dist.all_to_all([3], [t]), "output_tensor_list"),
            (lambda: dist.all_to_all([t], [3]), "input_tensor_list"),
            (lambda: dist.all_gather([3], t), "tensor_list"),
            (lambda: dist.all_gather_into_tensor(t, 3), "input_tensor"),
            (lambda: dist.all_gather_into_tensor(3, t), "output_tensor"),
            (lambda: dist.all_gather_into_tensor(d, t), "same type"),
            (lambda: dist.reduce_scatter_tensor(t, 3), "input"),
            (lambda: dist.reduce_scatter_tensor(3, t), "output"),
            (lambda: dist.reduce_scatter_tensor(d, t), "same type"),
            (lambda: dist.all_to_all_single(3, t), "output"),
            (lambda: dist.all_to_all_single(t, 3), "input"),
            (lambda: dist.barrier(device_ids=3), "device_ids"),
        ),
        RuntimeError: (
            (lambda: dist.all_to_all_single(t, t, [1], [2]), "Split sizes"),
            (lambda: dist.all_to_all_single(t, t, [2], [1, 1]), "Split sizes"),
        ),
    }
    for error, calls in refused.items():
        for call, text in calls:
            with pytest.raises(error, match=text):
                call()


def test_flattened_meshes(world):
    assert world._flatten() is world and world._flatten("x") is world
    other = world._flatten("other")
    assert other is not world and other.mesh_dim_names == ("other",) and other.mesh.tolist() == [0]
    assert world._flatten("other") is other and world["other"] is other
    assert dist.get_process_group_ranks(other.get_group()) == [0]


def test_sizes_of_items_and_the_origin_of_a_checkpoint(tmp_path):
    assert item("a", (2, 3), dtype=torch.float64).tensor_storage_size() == 48
    assert item("b", (), WriteItemType.BYTE_IO).tensor_storage_size() is None
    dcp.save({"t": torch.ones(2)}, checkpoint_id=tmp_path, no_dist=True)
    origin = dcp.FileSystemReader(tmp_path).read_metadata().storage_meta
    assert str(origin.checkpoint_id) == str(tmp_path) and origin.save_id


def test_reductions_on_the_host():
    from msadapter.distributed.hccl_backend import _HOST_REDUCTIONS

    rows = torch.tensor([[1.0, 2.0], [3.0, 8.0]])
    wanted = {"sum": [4, 10], "avg": [2, 5], "prod": [3, 16], "min": [1, 2], "max": [3, 8]}
    assert {name: reduce(rows).tolist() for name, reduce in _HOST_REDUCTIONS.items()} == wanted
