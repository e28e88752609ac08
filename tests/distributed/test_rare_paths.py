"""What programs do seldom with torch.distributed, in one process: other defaults, empty values, second uses."""

from __future__ import annotations

import collections
import math
import os
import socket
from datetime import timedelta

import pytest

import msadapter as torch
import msadapter.distributed as dist
import msadapter.distributed.checkpoint as dcp
import msadapter.nn.functional as F
from msadapter import nn
from msadapter.distributed import msrun, setup, utils, watchdog
from msadapter.distributed.algorithms.join import Join, Joinable, JoinHook
from msadapter.distributed.checkpoint import default_planner, state_dict, state_dict_saver
from msadapter.distributed.checkpoint.hf_storage import HuggingFaceStorageWriter
from msadapter.distributed.checkpoint.metadata import Metadata
from msadapter.distributed.device_mesh import DeviceMesh, init_device_mesh
from msadapter.distributed.elastic.multiprocessing.errors import ProcessFailure
from msadapter.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from msadapter.distributed.mpi_backend import MpiBackend
from msadapter.distributed.tensor import DTensor, Partial, Replicate, Shard, _dispatch, distribute_tensor
from msadapter.distributed.tensor._view_rules import groups
from msadapter.distributed.tensor.debug import CommDebugMode
from msadapter.utils.checkpoint import checkpoint


# ---- groups and stores
def test_reductions_and_several_operations_at_a_time(world):
    t = torch.arange(3.0)
    dist.reduce(t, 0, dist._make_nccl_premul_sum(2.0))
    assert t.tolist() == [0.0, 2.0, 4.0]
    group = dist.group.WORLD
    made = group.allreduce([t, torch.ones(1)])
    assert made.is_completed() and made.wait() and made.is_success()
    with pytest.warns(UserWarning, match="does not belong to the given group"):
        assert dist.recv(t, group=dist.GroupMember.NON_GROUP_MEMBER) == -1 and t.tolist() == [0.0, 2.0, 4.0]
    waited = []
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.all_reduce(t)
    for work in manager.works:
        work.wait = lambda: waited.append(1)
    manager.wait()
    assert len(waited) == len(manager.works) == 1


def test_the_group_of_all_can_be_replaced(world):
    before = dist.group.WORLD
    try:
        dist.group.WORLD = other = dist.new_group([0])
        assert dist.GroupMember.WORLD is other and dist.distributed_c10d._get_default_group() is other
    finally:
        dist.group.WORLD = before
    assert dist.group.WORLD is before


def test_the_settings_of_joinables(world):
    """Inside of a block the first one is marked; before and after it, nothing is on."""

    class Counted(Joinable):
        join_device, join_process_group = torch.device("cpu"), dist.group.WORLD

        def join_hook(self, **kwargs):
            return JoinHook()

    pair = [Counted(), Counted()]
    off = (False, False, False)
    assert [tuple(each._join_config) for each in pair] == [off, off]
    with Join(pair, throw_on_early_termination=True):
        assert [tuple(each._join_config) for each in pair] == [(True, True, True), (True, True, False)]
    assert [tuple(each._join_config) for each in pair] == [off, off]


def test_a_message_is_copied_only_if_its_tensor_may_change():
    sent = []

    class Sending(MpiBackend):
        _largest_tag = 100

        def __init__(self):
            pass

        def _send(self, data, dst, tag):
            sent.append((data, dst, tag))

        def _work(self, name, tensor, request, outputs, keep):
            assert keep is sent[-1][0] and outputs == [tensor]
            return name

    x = torch.arange(6.0).reshape(2, 3)
    for own, tensor, copied in (
        (True, x, True),
        (False, x, False),
        (True, x.t(), True),
        (False, x.t(), True),
    ):
        assert Sending().send(tensor, 3, 107, own) == "SEND to 3"
        data, dst, tag = sent[-1]
        assert (dst, tag) == (3, 7) and torch.equal(data, tensor) and data.is_contiguous()
        assert (data.data_ptr() != x.data_ptr()) == copied


def test_a_store_on_a_given_socket():
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    store = dist.TCPStore(
        "127.0.0.1", port, is_master=True, master_listen_fd=listener.detach(), timeout=timedelta(seconds=9)
    )
    assert store.port == port and store.has_extended_api() and dist.HashStore().has_extended_api()
    store.set("key", "value")
    store._timeout = 7.5
    other = store.clone()
    assert other.get("key") == b"value" and other._timeout == timedelta(seconds=7.5)
    store.close()


@pytest.mark.parametrize("make", [lambda: init_device_mesh("cpu", (1,)), lambda: DeviceMesh("cpu", [0])])
def test_a_mesh_starts_the_job(monkeypatch, make):
    started = []
    monkeypatch.setattr(setup, "is_initialized", lambda: bool(started))
    monkeypatch.setattr(setup, "init_process_group", lambda *a, **k: started.append(1))
    monkeypatch.setattr(setup, "get_rank", lambda *a: 0)
    monkeypatch.setattr(setup, "get_world_size", lambda *a: 1)
    monkeypatch.setattr(DeviceMesh, "_make_groups", lambda self: [])
    assert make().get_coordinate() == [0] and started == [1]


def test_what_late_ranks_do(monkeypatch):
    class Work:
        backend, sequence, message = None, 3, False

    Work.backend = type("Backend", (), {"ranks": [0, 1, 2], "name": "g"})
    monkeypatch.setattr(watchdog.watch, "rank", 0)
    answers = {
        1: {"places": {"g": [3, "ALLREDUCE", False]}, "stack": "here"},
        2: {"places": {"g": [4, "BARRIER", True]}, "stack": "there"},
    }
    assert watchdog._report(Work, answers) == [
        "All ranks have arrived at this operation, or have continued with another one.",
        "Rank 1 is in ALLREDUCE of this group and stands at:\nhere",
        "Rank 2 finished BARRIER of this group and stands at:\nthere",
    ]
    monkeypatch.setattr(watchdog.watch, "store", None)
    assert watchdog.standing(Work.backend, [1]) == ""
    monkeypatch.setattr(watchdog.watch, "store", object())
    monkeypatch.setattr(watchdog.watch, "ask", lambda ranks: answers, raising=False)
    assert watchdog.standing(Work.backend, [1, 2, 5]) == "\nRank 1 is in ALLREDUCE.\nRank 2 finished BARRIER."
    Work.backend.name = "other"
    assert watchdog.standing(Work.backend, [2]) == "\nRank 2 finished nothing."


def test_names_of_logs_and_ends_of_processes(tmp_path):
    def name(*words):
        return msrun.job_of(
            msrun.get_args_parser().parse_args(["--worker_num=1", "--local_worker_num=1", *words, "x.py"])
        ).log_name

    assert (
        name("--worker_log_name=log") == "log_{rank}.log"
        and name("--worker_log_name={rank}a") == "{rank}a.log"
    )
    failed = ProcessFailure(0, 7, 3, str(tmp_path / "absent"))
    assert "To enable traceback" in failed.message and failed.exitcode == 3
    assert (
        ProcessFailure(0, 7, -9, str(tmp_path / "absent")).message == "Signal 9 (SIGKILL) received by PID 7"
    )


def test_tensors_in_named_tuples():
    Pair = collections.namedtuple("Pair", "a b")
    made = utils._apply_to_tensors(lambda t: t + 1, [Pair(torch.ones(1), {"x": (torch.zeros(1), 3)})])
    assert (
        type(made[0]) is Pair
        and made[0].a.item() == 2
        and made[0].b["x"][0].item() == 1
        and made[0].b["x"][1] == 3
    )


# ---- checkpoints
def test_ids_and_origins_of_checkpoints(tmp_path, monkeypatch):
    valid = dcp.FileSystemReader.validate_checkpoint_id
    assert valid(tmp_path) and valid(str(tmp_path)) and valid("relative") and not valid("s3://bucket/key")
    dcp.save({"t": torch.ones(2)}, checkpoint_id=tmp_path, no_dist=True)
    reader = dcp.FileSystemReader(tmp_path)
    assert (
        str(reader.storage_meta().checkpoint_id) == str(tmp_path)
        and reader.storage_meta().load_id == reader.load_id
    )
    monkeypatch.setattr(dcp.filesystem, "read_metadata", lambda stream: Metadata({}))
    assert reader.read_metadata().storage_meta.load_id == reader.load_id


def test_states_that_are_empty_are_filled(tmp_path):
    writer = dcp.FileSystemWriter(tmp_path)
    dcp.save({"t": torch.arange(3.0), "n": 5}, storage_writer=writer, no_dist=True)
    read: dict = {}
    dcp.load(read, checkpoint_id=tmp_path, no_dist=True, planner=default_planner._EmptyStateDictLoadPlanner())
    assert read["t"].tolist() == [0.0, 1.0, 2.0] and read["n"] == 5
    metadata = dcp.FileSystemReader(tmp_path).read_metadata()
    metadata.planner_data = None
    empty: dict = {}
    default_planner._EmptyStateDictLoadPlanner().set_up_planner(empty, metadata)
    assert empty["t"].shape == (3,) and set(empty) == {"t", "n"}


def test_an_asynchronous_save_that_fails(tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError("the disk is full")

    monkeypatch.setattr(state_dict_saver, "save", fail)
    future = dcp.async_save({"t": torch.ones(1)}, checkpoint_id=tmp_path)
    with pytest.raises(OSError, match="the disk is full"):
        future.result()


def test_consolidation_writes_one_file_unless_told_otherwise(tmp_path):
    writer = HuggingFaceStorageWriter(tmp_path / "pieces", save_distributed=True, enable_consolidation=True)
    writer.consolidated_output_path = str(tmp_path / "whole")
    os.makedirs(tmp_path / "whole", exist_ok=True)
    dcp.save({"a": torch.ones(2), "b": torch.zeros(3)}, storage_writer=writer, no_dist=True)
    assert [p.name for p in (tmp_path / "whole").glob("*.safetensors")] == [
        "model-00001-of-00001.safetensors"
    ]


@pytest.mark.parametrize("rate", [0.1, torch.tensor(0.1)])
def test_the_first_state_of_an_optimizer_moves_no_parameter(rate):
    """Even where parameters decay, and the learning rate and the gradients are as before."""
    layer = nn.Linear(2, 2)
    layer.bias.requires_grad_(False)
    before = [p.detach().clone() for p in layer.parameters()]
    optimizer = torch.optim.AdamW(layer.parameters(), lr=rate, weight_decay=0.5)
    state_dict._init_optim_state(optimizer)
    assert set(optimizer.state) == {layer.weight} and optimizer.param_groups[0]["lr"] is rate
    assert all(torch.equal(p, b) and p.grad is None for p, b in zip(layer.parameters(), before, strict=True))
    assert float(rate) == pytest.approx(0.1)


def test_an_optimizer_with_some_gradients_gets_no_state():
    layer = nn.Linear(2, 2)
    layer.weight.grad = torch.ones(2, 2)
    optimizer = torch.optim.AdamW(layer.parameters())
    state_dict._init_optim_state(optimizer)
    assert not optimizer.state and layer.bias.grad is None and layer.weight.grad.eq(1).all()


# ---- DTensor
R, S0 = Replicate(), Shard(0)


def test_shapes_that_are_split_into_groups():
    shapes = [
        (),
        (1,),
        (1, 1),
        (2, 3, 1),
        (6,),
        (1, 6),
        (3, 2),
        (6, 1, 1),
        (2, 3),
        (4, 3, 2),
        (2, 2, 6),
        (8, 3),
        (24,),
    ]
    for old in shapes:
        for new in shapes:
            if math.prod(old) == math.prod(new):
                made = groups(old, new)
                assert [d for a, _ in made for d in a] == list(range(len(old)))
                assert [d for _, b in made for d in b] == list(range(len(new)))
                assert all(math.prod(old[d] for d in a) == math.prod(new[d] for d in b) for a, b in made), (
                    old,
                    new,
                )
    assert groups((2, 3, 4), (6, 2, 2)) == [([0, 1], [0]), ([2], [1, 2])]
    assert groups((1,), (1, 1)) == [([0], [0]), ([], [1])] and groups((1, 1), (1,)) == [([0], [0]), ([1], [])]


def test_tensors_without_dims(world):
    d = distribute_tensor(torch.tensor(3.0), world, [R])
    assert d.sum(0).full_tensor().item() == 3 and d.amax(-1).full_tensor().item() == 3
    assert [x.full_tensor().item() for x in d.topk(1, 0)] == [3.0, 0]
    assert d.cumsum(0).full_tensor().item() == 3


def test_gradients_asked_for_and_replicas_that_are_made_equal(world):
    x = torch.ones(2, 2, requires_grad=True)
    with CommDebugMode() as counts:
        d = DTensor.from_local(x.detach(), world, [R], run_check=True)
    assert counts.get_comm_counts() == {"broadcast": 1}
    with CommDebugMode() as counts:
        DTensor.from_local(x.detach(), world, [S0], run_check=True)
    assert counts.get_total_counts() == 0
    d = DTensor.from_local(x, world, [R], grad_placements=[Partial()])
    (d * 3).sum().backward()
    assert x.grad.eq(3).all()
    with pytest.raises(RuntimeError, match="must be a Shard, Replicate or Partial"):
        DTensor.from_local(x, world, [R], grad_placements=[0])
    made = DTensor(torch.ones(2), d[0].detach()._spec, requires_grad=True)
    assert made.requires_grad and made._local_tensor.requires_grad


def test_ordinary_indices_and_targets(world):
    weight = distribute_tensor(torch.arange(12.0).reshape(6, 2), world, [S0])
    indices = torch.tensor([[5, 0], [3, 3]])
    assert torch.equal(F.embedding(indices, weight).full_tensor(), weight.full_tensor()[indices])
    torch.manual_seed(0)
    logits, target = torch.randn(4, 3), torch.tensor([0, 2, 1, -100])
    for reduction in ("mean", "sum", "none"):
        found = F.cross_entropy(distribute_tensor(logits, world, [S0]), target, reduction=reduction)
        assert torch.allclose(found.full_tensor(), F.cross_entropy(logits, target, reduction=reduction))


def test_the_table_of_plans_has_a_limit(world, monkeypatch):
    monkeypatch.setattr(_dispatch, "_plans", dict.fromkeys(range(10001)))
    distribute_tensor(torch.ones(2), world, [S0]).exp()
    assert 0 < len(_dispatch._plans) < 10


# ---- fully_shard
def _layer(**options):
    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    plain = nn.Linear(3, 2)
    plain.load_state_dict(layer.state_dict())
    return fully_shard(layer, **options), plain


def test_gradients_of_two_passes_add_up(world):
    layer, plain = _layer(mesh=world)
    for x in (torch.ones(4, 3), torch.arange(6.0).reshape(2, 3)):
        layer(x).sum().backward()
        plain(x).sum().backward()
    assert torch.allclose(layer.weight.grad.full_tensor(), plain.weight.grad)
    assert torch.allclose(layer.bias.grad.full_tensor(), plain.bias.grad)


def test_parameters_that_are_frozen_and_thawed(world):
    layer, _ = _layer(mesh=world)
    x = torch.ones(4, 3)
    for wanted in (True, False, True):
        layer.weight.requires_grad_(wanted)
        layer.weight.grad = None
        layer(x).sum().backward()
        assert (layer.weight.grad is not None) == wanted
    assert layer.weight.grad.full_tensor().eq(4).all()


def test_a_sharded_layer_that_is_recomputed(world):
    layer, plain = _layer(mesh=world)
    outer = fully_shard(nn.Sequential(layer, nn.Tanh()), mesh=world)
    x, y = torch.ones(4, 3, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    outer[1](checkpoint(outer[0], x, use_reentrant=False)).sum().backward()
    plain(y).tanh().sum().backward()
    assert torch.allclose(x.grad, y.grad) and torch.allclose(
        layer.weight.grad.full_tensor(), plain.weight.grad
    )


def test_inputs_given_by_name_are_cast(world):
    seen = {}

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(2))

        def forward(self, x, *, y):
            seen.update(x=x.dtype, y=y.dtype)
            return (x * y * self.weight).sum()

    for cast, dtype in ((True, torch.bfloat16), (False, torch.float32)):
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, cast_forward_inputs=cast)
        fully_shard(Layer(), mesh=world, mp_policy=policy)(torch.ones(2), y=torch.ones(2))
        assert seen == {"x": dtype, "y": dtype}
