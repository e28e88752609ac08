"""torch.distributed in a job of one process."""

import datetime
import hashlib
import warnings

import pytest

import msadapter as torch
import msadapter.distributed as dist
import msadapter.distributed._functional_collectives as fc
from msadapter.distributed import ReduceOp


@pytest.fixture
def job(monkeypatch):
    for name, value in (
        ("RANK", "0"),
        ("WORLD_SIZE", "1"),
        ("MASTER_ADDR", "localhost"),
        ("MASTER_PORT", "0"),
    ):
        monkeypatch.setenv(name, value)
    dist.init_process_group("nccl")
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_before_the_start():
    assert not dist.is_initialized()
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        dist.get_rank()


def test_missing_environment(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ValueError, match="environment variable RANK expected"):
        dist.init_process_group("gloo")


def test_missing_ranks_are_named(tmp_path):
    with pytest.raises(dist.DistStoreError, match=r"rank 0 still waits for ranks \[1\] of 2"):
        dist.init_process_group(
            "gloo",
            init_method=f"file://{tmp_path}/store",
            rank=0,
            world_size=2,
            timeout=datetime.timedelta(seconds=0.3),
        )
    assert not dist.is_initialized()


def test_ranks_and_groups(job):
    group = dist.new_group([0], backend="gloo")
    assert (dist.get_rank(), dist.get_world_size(), dist.get_backend()) == (0, 1, "nccl")
    assert dist.get_backend(group) == "gloo"
    assert dist.get_process_group_ranks(group) == [0]
    assert dist.group.WORLD is dist.distributed_c10d._get_default_group()
    with pytest.raises(ValueError, match="twice"):
        dist.init_process_group("nccl")
    with pytest.raises(ValueError, match="rank should be within the world_size"):
        dist.new_group([1])


def test_collectives(job):
    t = torch.arange(4.0)
    work = dist.all_reduce(t, async_op=True)
    assert work.wait() and work.is_completed()
    assert dist.all_reduce(t) is None
    out = torch.zeros(4)
    dist.all_gather_into_tensor(out, t)
    assert torch.equal(out, t)
    pieces = [torch.zeros(4)]
    dist.all_gather(pieces, t)
    assert torch.equal(pieces[0], t)
    dist.reduce_scatter_tensor(out, t, op=dist._make_nccl_premul_sum(0.5))
    assert torch.equal(out, t * 0.5)
    dist.all_to_all_single(out, t, [4], [4])
    assert torch.equal(out, t)
    received = torch.zeros(4)
    works = dist.batch_isend_irecv([dist.P2POp(dist.isend, t, 0), dist.P2POp(dist.irecv, received, 0)])
    t.zero_()  # the message must not change after the send, because the backend has it already
    for work in works:
        work.wait()
    assert received.tolist() == [0.0, 1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "call, error",
    [
        (lambda t: dist.all_reduce([t]), TypeError),
        (lambda t: dist.all_gather_into_tensor(torch.zeros(3), t), ValueError),
        (lambda t: dist.all_gather([t, t], t), ValueError),
        (lambda t: dist.send(t, 0), ValueError),
        (lambda t: dist.all_to_all_single(torch.zeros(4), t, [3], [4]), RuntimeError),
    ],
)
def test_wrong_arguments(job, call, error):
    with pytest.raises(error):
        call(torch.arange(4.0))


@pytest.mark.parametrize("count", [0, 2])
@pytest.mark.parametrize(
    "call",
    [
        lambda t, some: dist.all_gather(some, t),
        lambda t, some: dist.gather(t, some or ()),
        lambda t, some: dist.scatter(t, some or ()),
        lambda t, some: dist.reduce_scatter(t, some),
        lambda t, some: dist.all_to_all([t], some),
        lambda t, some: dist.all_to_all(some, [t]),
        lambda t, some: dist.all_gather_coalesced([[x] for x in some], [t]),
        lambda t, some: dist.all_gather_coalesced([some], [t]),
        lambda t, some: dist.group.WORLD.allgather([some], [t]),
    ],
)
def test_lists_of_another_length_than_the_group(job, call, count):
    t = torch.arange(4.0)
    with pytest.raises(ValueError, match="for each of the 1 proc|must be specified|but there are 1 inputs"):
        call(t, [torch.zeros(4) for _ in range(count)])
    assert t.tolist() == [0.0, 1.0, 2.0, 3.0]


def test_methods_of_groups_take_tensors_or_lists(job):
    group = dist.group.WORLD
    for given in (torch.arange(3.0), [torch.arange(3.0), torch.ones(2)], (torch.ones(1),)):
        tensors = list(given) if isinstance(given, (list, tuple)) else [given]
        before = [t.clone() for t in tensors]
        for work in (group.allreduce(given), group.broadcast(given), group.allreduce(given, ReduceOp.MAX)):
            assert work.wait()
        assert all(map(torch.equal, tensors, before))


def test_collectives_that_return_tensors(job):
    x = torch.arange(6.0).reshape(3, 2)
    group = dist.group.WORLD
    for op in ("sum", "MAX", ReduceOp.MIN):
        assert torch.equal(fc.all_reduce(x, op, group), x)
    assert torch.equal(fc.all_reduce(x, dist._make_nccl_premul_sum(0.5), None), x / 2)
    assert fc.all_to_all_single(x, [3], [3], group).equal(x) and fc.all_to_all_single(
        x, None, None, group
    ).equal(x)
    assert fc.all_gather_tensor(x, 1, group).equal(x) and fc.reduce_scatter_tensor(x, "avg", 1, group).equal(
        x
    )
    leaf = x.clone().requires_grad_()
    made = fc.reduce_scatter_tensor_autograd(fc.all_gather_tensor_autograd(leaf, 1, group), "avg", 0, group)
    (fc.all_to_all_single_autograd(made, [3], [3], group) * x).sum().backward()
    assert torch.equal(leaf.grad, x)
    with pytest.raises(NotImplementedError, match="the gradient of"):
        fc.reduce_scatter_tensor_autograd(leaf, "max", 0, group)
    with pytest.raises(NotImplementedError, match="this kind of group"):
        fc.all_reduce(x, "sum", 3)


def test_objects(job):
    gathered = [None]
    dist.all_gather_object(gathered, {"a": 1})
    assert gathered == [{"a": 1}]
    dist.gather_object("x", gathered, dst=0)
    assert gathered == ["x"]
    items = [(1, 2)]
    dist.broadcast_object_list(items, 0)
    assert items == [(1, 2)]
    dist.scatter_object_list(gathered, [{"q": 2}], 0)
    assert gathered == [{"q": 2}]


def test_coalescing(job):
    with dist._coalescing_manager(dist.group.WORLD, async_ops=True) as manager:
        dist.all_reduce(torch.ones(2))
        dist.reduce_scatter_tensor(torch.zeros(2), torch.ones(2), async_op=True)
    manager.wait()
    assert len(manager.works) == 2


def test_mesh(job):
    mesh = dist.init_device_mesh("cuda", (1, 1), mesh_dim_names=("dp", "tp"))
    assert mesh["tp"].size() == 1
    assert mesh.get_group("dp").size() == 1
    assert mesh.get_coordinate() == [0, 0]


def test_a_store_counts_the_processes_that_have_met_in_one_key():
    store = dist.TCPStore("localhost", 0, 1, True)
    assert store.num_keys() == 1
    assert dist.TCPStore("localhost", 0, 1, True, wait_for_workers=False).num_keys() == 0


def test_stores(tmp_path):
    for store in (
        dist.HashStore(),
        dist.FileStore(str(tmp_path / "store"), 1),
        dist.TCPStore("localhost", 0, 1, True),
    ):
        store.set("a", "b")
        assert store.get("a") == b"b"
        assert store.add("n", 3) == 3
        assert dist.PrefixStore("p", store).add("n", 1) == 1
        assert store.compare_set("a", "b", "c") == b"c"
        assert store.compare_set("a", "b", "d") == b"c" == store.get("a")
        assert (
            store.compare_set("new", "", "first") == b"first" and store.compare_set("none", "x", "y") == b"x"
        )
        assert not store.check(["none"]) and store.check(["a", "new"]) and not store.check(["a", "none"])
        before = store.num_keys()
        store.multi_set(["x", "y"], ["1", b"2"])
        store.append("x", "3")
        store.append("z", b"4")
        assert store.multi_get(["y", "x", "z"]) == [b"2", b"13", b"4"] and store.num_keys() == before + 3
        assert store.add("n", -5) == -2 and store.get("n") == b"-2"
        store.wait(["x", "y"], datetime.timedelta(seconds=5))
        assert store.delete_key("a") and not store.check(["a"]) and not store.delete_key("a")
        assert store.num_keys() == before + 2
        with pytest.raises(dist.DistStoreError, match="wait timeout"):
            store.wait(["missing"], datetime.timedelta(seconds=0.05))


def test_data_parallel(job):
    model = torch.nn.Linear(2, 1)
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    wrapped(torch.ones(3, 2)).sum().backward()
    assert model.weight.grad.tolist() == [[3.0, 3.0]]
    with wrapped.no_sync():
        wrapped(torch.ones(3, 2)).sum().backward()
    assert model.weight.grad.tolist() == [[6.0, 6.0]]
    assert set(wrapped.state_dict()) == {"module.weight", "module.bias"}


def test_launcher(tmp_path, capfd):
    script = tmp_path / "job.py"
    script.write_text(
        "import os, sys\nprint(os.environ['WORLD_SIZE'], os.environ['LOCAL_RANK'], sys.argv[1:])\n"
    )
    import os
    import sys

    from msadapter.distributed import run

    before, argv, path = dict(os.environ), list(sys.argv), list(sys.path)
    try:
        run.main(["--nproc_per_node", "1", "--master_port", "0", str(script), "--x", "2"])
    finally:
        os.environ.clear()
        os.environ.update(before)
        sys.argv[:], sys.path[:] = argv, path
    assert capfd.readouterr().out == "1 0 ['--x', '2']\n"


def test_names_that_programs_reach_without_importing_them():
    assert torch._C._distributed_c10d.ProcessGroup is dist.ProcessGroup
    from msadapter.distributed.checkpoint.api import _is_wrapped_exception, _wrap_exception

    assert _is_wrapped_exception(_wrap_exception(ValueError("x"))) and not _is_wrapped_exception((1, 2))


def test_the_name_of_the_communicator(job):
    group = dist.new_group([0])
    backend = group._get_backend(torch.device("cpu"))
    assert dist.distributed_c10d._resolve_process_group(backend.get_hccl_comm_name(0)) is group
    with pytest.raises(RuntimeError, match="rank 3 is not in the group"):
        group.get_hccl_comm_name(3)


@pytest.mark.parametrize("newest", [True, False])
def test_older_names_warn_as_in_pytorch(job, monkeypatch, newest):
    monkeypatch.setattr(dist.collectives, "_NEWEST", newest)
    private = "is a private function and will be deprecated"
    calls = {
        "all_gather_into_tensor": ("is deprecated", "all_gather_single", 1.0),
        "_all_gather_base": (private, "all_gather_single" if newest else "all_gather_into_tensor", 1.0),
        "reduce_scatter_tensor": ("is deprecated", "reduce_scatter_single", 1.0),
        "_reduce_scatter_base": (
            private,
            "reduce_scatter_single" if newest else "reduce_scatter_tensor",
            1.0,
        ),
    }
    for name, (state, newer, value) in calls.items():
        out = torch.zeros(2)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            getattr(dist, name)(out, torch.ones(2))
        texts = [f"`torch.distributed.{name}` {state}. Please use `torch.distributed.{newer}` instead."]
        silent = state == "is deprecated" and not newest
        assert [str(w.message) for w in told] == ([] if silent else texts)
        assert all(w.category is FutureWarning and w.filename == __file__ for w in told)
        assert out.tolist() == [value, value]


def test_collectives_are_recorded_under_a_name(job):
    t = torch.ones(2)
    with torch.profiler.profile() as profile:
        with dist.record_comm("outer"):
            dist.all_reduce(t)
            with dist.record_comm("inner"):
                work = dist.all_gather_single(torch.zeros(2), t, async_op=True)
            dist.barrier()
        dist.all_reduce(t)
        work.wait()
        work.wait()
    names = [event.name for event in profile.events() if event.name in ("outer", "inner")]
    assert sorted(names) == ["inner", "outer", "outer"]


def test_groups_are_not_shrunk(job, monkeypatch):
    for given, error, text in (
        ((1,), TypeError, "must be a list, but got int"),
        (([],), ValueError, "cannot be empty"),
        (([0], None, 7), ValueError, "Invalid shrink_flags value: 7"),
        (([0],), ValueError, "with size 1"),
    ):
        with pytest.raises(error, match=text):
            dist.shrink_group(*given)
    monkeypatch.setattr(type(dist.group.WORLD), "size", lambda self: 2)
    with pytest.raises(TypeError, match="backend for '0' does not support shrinking operations"):
        dist.shrink_group([1])


def test_a_group_is_named_after_given_ranks(tmp_path):
    dist.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1, _ranks=[3, 5]
    )
    name = dist.distributed_c10d._get_process_group_name(dist.group.WORLD)
    dist.destroy_process_group()
    assert name == hashlib.sha1(b"3_5").hexdigest()
