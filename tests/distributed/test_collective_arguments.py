"""What collectives hand to a backend, and the groups of meshes, for ranks that this process only plays. Nothing is sent."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import pytest

import msadapter as torch
import msadapter.distributed as dist
from msadapter.distributed import ReduceOp, collectives, device_mesh, point_to_point, setup, work
from msadapter.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from msadapter.distributed.device_mesh import DeviceMesh, _mesh_resources, init_device_mesh


class Recorder:
    """A backend that notes its calls."""

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *arguments: self.calls.append((name, *arguments)) or work.Work()


class Group:
    """A group of the ranks 4, 6 and 9, in which this process is one."""

    _ranks = (4, 6, 9)

    def __init__(self, place):
        self.place, self._backend = place, Recorder()

    def size(self):
        return 3

    def rank(self):
        return self.place

    @property
    def last(self):
        return self._backend.calls[-1]


@pytest.fixture(params=[0, 1])
def group(request, monkeypatch):
    made = Group(request.param)
    for module in (collectives, point_to_point):
        monkeypatch.setattr(module, "resolve", lambda group: made)
        monkeypatch.setattr(module, "not_in_group", lambda group, what: False)
    monkeypatch.setattr(collectives, "default_group", lambda: None)
    monkeypatch.setattr(collectives, "get_group_rank", lambda group, rank: group._ranks.index(rank))
    monkeypatch.setattr(point_to_point, "get_rank", lambda group: made.place)
    return made


T, WIDE, THREE = torch.ones(2), torch.ones(6), [torch.ones(2) for _ in range(3)]
OTHER = [torch.ones(2), torch.ones(2), torch.ones(2).double()]


# ---- collectives
def same(found, *wanted):
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a is b or a == b


def test_reductions_and_broadcasts(group):
    assert dist.all_reduce(T) is None
    same(group.last, "allreduce", T, ReduceOp.SUM)
    assert isinstance(dist.all_reduce(T, ReduceOp.MAX, async_op=True), work.Work)
    same(group.last, "allreduce", T, ReduceOp.MAX)
    for options, root in (({}, 0), ({"dst": 6}, 1), ({"dst": 9}, 2), ({"group_dst": 2}, 2), ({"dst": 4}, 0)):
        dist.reduce(T, **options)
        same(group.last, "reduce", T, root, ReduceOp.SUM)
        dist.reduce(T, op=ReduceOp.MIN, **options)
        same(group.last, "reduce", T, root, ReduceOp.MIN)
    for options, root in (({}, 0), ({"src": 6}, 1), ({"src": 4}, 0), ({"group_src": 2}, 2)):
        dist.broadcast(T, **options)
        same(group.last, "broadcast", T, root)
    dist.all_reduce_coalesced([T, WIDE], ReduceOp.MAX)
    calls = group._backend.calls[-2:]
    same(calls[0], "allreduce", T, ReduceOp.MAX), same(calls[1], "allreduce", WIDE, ReduceOp.MAX)
    before = len(group._backend.calls)
    dist.all_reduce_coalesced(T)
    assert len(group._backend.calls) == before + 1 and group.last[1] is T
    assert dist.barrier() is None and group.last == ("barrier",)
    assert dist.barrier(async_op=True, device_ids=[0]).wait()


def test_gathered_and_scattered_tensors(group):
    dist.all_gather(THREE, T)
    same(group.last, "allgather", THREE, T)
    dist.all_gather_into_tensor(WIDE, T)
    same(group.last, "allgather_into", WIDE, T)
    dist.reduce_scatter(T, THREE, ReduceOp.AVG)
    same(group.last[::3], "reduce_scatter", ReduceOp.AVG)
    assert group.last[1] is T and [a is b for a, b in zip(group.last[2], THREE, strict=True)] == [True] * 3
    dist.reduce_scatter_tensor(T, WIDE, ReduceOp.MIN)
    same(group.last, "reduce_scatter_into", T, WIDE, ReduceOp.MIN)
    root = group._ranks[group.place]
    dist.gather(T, THREE, root)
    same(group.last, "gather", THREE, T, group.place)
    dist.scatter(T, THREE, group_src=group.place)
    same(group.last, "scatter", T, THREE, group.place)
    other = (group.place + 1) % 3
    dist.gather(T, group_dst=other)
    same(group.last, "gather", [], T, other)
    dist.scatter(T, src=group._ranks[other])
    same(group.last, "scatter", T, [], other)
    for call in (
        lambda: dist.gather(T, THREE, group_dst=other),
        lambda: dist.scatter(T, THREE, group_src=other),
    ):
        with pytest.raises(ValueError, match="must NOT be specified on non-"):
            call()
    dist.all_gather_coalesced([[T, WIDE]] * 3, [T, WIDE])
    first, second = group._backend.calls[-2:]
    assert first[0] == second[0] == "allgather" and first[2] is T and second[2] is WIDE
    assert all(a is T and b is WIDE for a, b in zip(first[1], second[1], strict=True))
    for outputs, text in (([[T]] * 2, "one list for each of the 3"), ([[T]] * 3, "holds 1 tensors, but")):
        with pytest.raises(ValueError, match=text):
            dist.all_gather_coalesced(outputs, [T, WIDE])


def test_exchanged_tensors(group):
    outputs = [torch.zeros(2) for _ in range(3)]
    dist.all_to_all(outputs, THREE)
    name, to, given = group.last
    assert name == "alltoall" and to[1] is outputs[1] and given[1] is THREE[1]
    out = torch.zeros(6)
    dist.all_to_all_single(out, WIDE)
    same(group.last, "alltoall_single", out, WIDE, [], [])
    dist.all_to_all_single(out, WIDE, torch.tensor([1, 2, 3]), [4, 2, 0])
    same(group.last, "alltoall_single", out, WIDE, [1, 2, 3], [4, 2, 0])
    columns = torch.ones(6, 2)
    dist.all_to_all_single(columns, columns)
    for a, b in ((torch.ones(2, 3), columns), (columns, torch.ones(2, 3))):
        with pytest.raises(RuntimeError, match="does not divide equally across group size"):
            dist.all_to_all_single(a, b)
    for sizes, text in (([1, 2, 4], "Split sizes"), ([6, 0], "Split sizes"), ([-1, 3, 4], "not be negative")):
        for pair in ((sizes, None), (None, sizes)):
            with pytest.raises(RuntimeError, match=text):
                dist.all_to_all_single(out, WIDE, *pair)


def test_tensors_of_different_dtypes(group):
    """They are sent as bytes, so that other dtypes would be numbers that mean nothing."""
    root = group.place
    for call in (
        lambda: dist.all_gather(OTHER, T),
        lambda: dist.gather(T, OTHER, group_dst=root),
        lambda: dist.scatter(T, OTHER, group_src=root),
        lambda: dist.reduce_scatter(T, OTHER),
        lambda: dist.all_to_all(OTHER, THREE),
        lambda: dist.all_to_all(THREE, OTHER),
        lambda: dist.all_to_all_single(WIDE.double(), WIDE),
    ):
        with pytest.raises(ValueError, match="tensors with different dtypes: found torch.float"):
            call()
    with pytest.raises(ValueError, match="output has 3 elements, but the input for this rank has 2"):
        dist.reduce_scatter(torch.ones(3), THREE)
    for call in (
        lambda: dist.all_gather_into_tensor(WIDE, WIDE),
        lambda: dist.reduce_scatter_tensor(WIDE, WIDE),
    ):
        with pytest.raises(ValueError, match="size"):
            call()
    assert group._backend.calls == []


def test_buckets_of_a_broadcast(group, monkeypatch):
    sent = []
    monkeypatch.setattr(collectives, "broadcast", lambda flat, **where: sent.append((flat, where)))
    tensors = [torch.full((2,), float(k)) for k in range(5)]
    tensors.insert(1, torch.full((3,), 9.0).double())
    collectives._broadcast_coalesced(group, tensors, 16, 2)
    assert [flat.tolist() for flat, _ in sent] == [[0, 0, 1, 1], [2, 2, 3, 3], [4, 4], [9, 9, 9]]
    assert all(where == {"group": group, "group_src": 2} for _, where in sent)
    monkeypatch.setattr(collectives, "broadcast", lambda flat, **where: flat.add_(1))
    collectives._broadcast_coalesced(group, tensors, 100)
    assert [t[0].item() for t in tensors] == [1, 10, 2, 3, 4, 5] and tensors[1].tolist() == [10] * 3


def test_operations_that_are_gathered(group, monkeypatch):
    monkeypatch.setattr(collectives.world, "coalescing", {})
    with dist._coalescing_manager() as manager:
        assert dist.all_reduce(T) is None and dist.all_reduce(T, async_op=True) is manager.works[1]
        with (
            pytest.raises(ValueError, match="non-empty op list at the start of coalescing"),
            dist._coalescing_manager(),
        ):
            pass
        ended = []
        manager.works[0].wait = lambda: ended.append(1)
        manager.append(None)
        assert len(manager.works) == 2 and not ended
    assert ended == [1] and collectives.world.coalescing == {}
    with dist._coalescing_manager(async_ops=True) as manager:
        dist.broadcast(T)
        manager.works[0].wait = lambda: ended.append(2)
    assert ended == [1]
    dist.all_reduce(T)
    assert len(manager.works) == 1


# ---- messages
def test_messages(group):
    to = 9
    dist.send(T, to, tag=5)
    same(group.last, "send", T, 2, 5, False)
    assert isinstance(dist.isend(T, group_dst=2), work.Work)
    same(group.last, "send", T, 2, 0, True)
    assert dist.recv(T, to, tag=3) == to
    same(group.last, "recv", T, 2, 3)
    dist.irecv(T)
    same(group.last, "recv", T, -1, 0)
    dist.irecv(T, group_src=2, tag=1)
    same(group.last, "recv", T, 2, 1)
    group._backend.recv = lambda tensor, src, tag: work.Work([tensor], source=1)
    assert dist.recv(T) == 6
    assert dist.recv(T, group_src=1) == 6
    own = group._ranks[group.place]
    for call in (lambda: dist.send(T, own), lambda: dist.isend(T, own)):
        with pytest.raises(ValueError, match="Invalid destination rank"):
            call()


def test_batches_of_messages(group):
    one = dist.P2POp(dist.isend, T, 9, tag=4)
    two = dist.P2POp(dist.irecv, WIDE, group_peer=1)
    assert (one.peer, one.group_peer, two.peer, two.group_peer) == (9, 2, 6, 1)
    assert repr(one) == "P2POp(isend peer=9, (2,))" and dist.batch_isend_irecv([]) == []
    assert len(dist.batch_isend_irecv([one, two])) == 2
    same(group._backend.calls[0], "send", T, 2, 4), same(group._backend.calls[1], "recv", WIDE, 1, 0)
    with pytest.raises(ValueError, match="Invalid ``op``"):
        dist.P2POp(dist.send, T, 9)
    for wrong in ((one, two), [one, 3], one):
        with pytest.raises(ValueError, match="Invalid ``p2p_op_list``"):
            dist.batch_isend_irecv(wrong)
    two.group = Group(0)
    with pytest.raises(ValueError, match="All ops need to use the same group"):
        dist.batch_isend_irecv([one, two])


# ---- meshes
@pytest.fixture
def job(monkeypatch):
    """A job of twelve ranks in which this process is rank 7. A group is the list of its ranks."""
    made = []

    def new_group(ranks):
        made.append(ranks)
        return SimpleNamespace(ranks=ranks) if 7 in ranks else device_mesh.GroupMember.NON_GROUP_MEMBER

    for name, value in (("is_initialized", True), ("get_rank", 7), ("get_world_size", 12)):
        monkeypatch.setattr(setup, name, lambda *args, value=value: value)
    monkeypatch.setattr(setup, "new_group", new_group)
    monkeypatch.setattr(device_mesh, "default_group", lambda: SimpleNamespace(ranks="all"))
    return made


def test_a_mesh_of_three_dims(job):
    mesh = init_device_mesh("cpu", (2, 3, 2), mesh_dim_names=("a", "b", "c"))
    assert mesh.mesh.tolist() == [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]]
    assert (mesh.ndim, mesh.shape, mesh.size(), mesh.size(1), mesh.numel()) == (3, (2, 3, 2), 12, 3, 12)
    assert mesh.get_coordinate() == [1, 0, 1] and mesh.get_rank() == 7
    assert [g.ranks for g in mesh.get_all_groups()] == [[1, 7], [7, 9, 11], [6, 7]] and len(job) == 6 + 4 + 6
    assert mesh.get_group("b").ranks == [7, 9, 11] and mesh.get_group(2).ranks == [6, 7]
    assert [mesh.get_local_rank(d) for d in ("a", 1, "c")] == [1, 0, 1]
    with pytest.raises(RuntimeError, match="Found the DeviceMesh have 3 dimensions"):
        mesh.get_group()
    with pytest.raises(KeyError, match="Invalid mesh_dim_names 'd' specified"):
        mesh.get_group("d")
    part = mesh["b", "c"]
    assert part.mesh.tolist() == [[6, 7], [8, 9], [10, 11]] and part.get_coordinate() == [0, 1]
    assert [g.ranks for g in part.get_all_groups()] == [[7, 9, 11], [6, 7]] and part._get_root_mesh() is mesh
    line = mesh["a"]
    assert line.mesh.tolist() == [1, 7] and line.get_group().ranks == [1, 7] and line.get_local_rank() == 1
    assert mesh["a", "b", "c"] is mesh and part["c"].mesh.tolist() == [6, 7]
    assert part["c"]._get_root_mesh() is mesh
    with pytest.raises(KeyError, match="should be in ascending order"):
        mesh["b", "a"]
    resources = _mesh_resources
    assert resources.get_root_mesh(part) is mesh and resources.get_root_mesh_dim(part) == 1
    assert resources.get_root_mesh_dim(mesh) is None and resources.get_mesh_dim_by_name(mesh, "c") == 2
    lines = resources._get_all_submeshes(mesh, "b")
    assert [m.mesh.tolist() for m in lines] == [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]
    assert lines[3].get_group().ranks == [7, 9, 11] and lines[0].get_all_groups() == []
    with pytest.raises(RuntimeError, match="No device mesh is currently active"):
        resources.get_current_mesh()
    with mesh, part:
        assert resources.get_current_mesh() is part
    assert resources.mesh_stack == []


def test_a_dimension_is_split(job):
    mesh = init_device_mesh("cpu", (12,), mesh_dim_names=("world",))
    split = mesh._unflatten(0, (2, 3, 2), ("a", "b", "c"), backend_override={"a": "fake"})
    assert split == init_device_mesh("cpu", (2, 3, 2), mesh_dim_names=("a", "b", "c"))
    assert split["a", "c"]._flatten().get_group().ranks == [0, 1, 6, 7]
    inner = init_device_mesh("cpu", (2, 6), mesh_dim_names=("x", "y"))._unflatten("y", (3, 2), ("b", "c"))
    assert inner.mesh.tolist() == split.mesh.tolist() and inner.mesh_dim_names == ("x", "b", "c")
    for dim, sizes, names, error, text in (
        ("z", (2, 6), ("a", "b"), ValueError, "dim z specified in `_unflatten` is not in"),
        (3, (2, 6), ("a", "b"), ValueError, "dim 3 specified in `_unflatten` is out of range 1"),
        (0, (2, 6), ("a",), RuntimeError, "same length"),
        (0, (2, 5), ("a", "b"), ValueError, "do not multiply to 12"),
    ):
        with pytest.raises(error, match=text):
            mesh._unflatten(dim, sizes, names)


def test_flattened_parts_of_a_mesh(job):
    mesh = init_device_mesh("cpu", (2, 3, 2), mesh_dim_names=("a", "b", "c"))
    flat = mesh["a", "c"]._flatten()
    assert flat.mesh_dim_names == ("a_c",) and flat.mesh.tolist() == [0, 1, 6, 7] and mesh["a_c"] is flat
    assert flat.get_group().ranks == [0, 1, 6, 7] and mesh["a", "c"]._flatten() is flat
    assert flat._get_root_mesh()._flatten_mapping == {"a_c": flat}  # Megatron-FSDP reads the names there
    assert job[-3:] == [[0, 1, 6, 7], [2, 3, 8, 9], [4, 5, 10, 11]] and flat._get_root_mesh() is mesh
    whole = mesh._flatten("all")
    assert whole.mesh.tolist() == list(range(12)) and whole.get_group().ranks == "all"
    assert mesh["b"]._flatten("b") == mesh["b"] and mesh["b"]._flatten("z") is mesh["z"]
    unnamed = init_device_mesh("cpu", (12,))
    assert unnamed.get_group().ranks == "all" and unnamed._flatten() is unnamed
    assert init_device_mesh("cpu", (3, 4))._flatten().mesh_dim_names == ("dim",)
    with pytest.raises(RuntimeError, match="Cannot slice a DeviceMesh without mesh_dim_names"):
        unnamed["a"]


def test_meshes_without_this_process(job):
    mesh = DeviceMesh("cpu", torch.tensor([[0, 1], [2, 3]]), mesh_dim_names=("a", "b"))
    assert mesh.get_coordinate() is None and mesh.get_all_groups() == [None, None]
    assert mesh["b"].mesh.tolist() == [0, 1] and mesh["b"].get_coordinate() is None
    assert mesh["a"].mesh.tolist() == [0, 2]


def test_meshes_that_cannot_be_made(job):
    for shape, names, text in (
        ((2, 3), ("a", "a"), "Each mesh_dim_name must be unique"),
        ((2, 3), ("a",), "should have same length"),
        ((2, 3), ("a", "b", "c"), "should have same length"),
        ((13,), None, "should not be bigger than default world size 12, but found 13 ranks"),
    ):
        with pytest.raises(RuntimeError, match=text):
            init_device_mesh("cpu", shape, mesh_dim_names=names)
    assert job == [] and init_device_mesh("cpu", (2, 3)).mesh.tolist() == [[0, 1, 2], [3, 4, 5]]


def test_meshes_of_existing_groups(job, monkeypatch):
    monkeypatch.setattr(setup, "get_process_group_ranks", lambda group: group.ranks)
    group, other = SimpleNamespace(ranks=[5, 7]), SimpleNamespace(ranks=[7, 8])
    made = DeviceMesh.from_group(group, "cpu", mesh_dim_names=("a",))
    assert made.mesh.tolist() == [5, 7] and made.get_group() is group and made.get_coordinate() == [1]
    assert made.mesh_dim_names == ("a",) and job == []
    made = DeviceMesh.from_group([group, other], "cpu", [[5, 6], [7, 8]])
    assert made.get_all_groups() == [group, other] and made.get_coordinate() == [1, 0]
    assert DeviceMesh.from_group(group, "cpu", [5, 7]).get_group(0) is group
    with pytest.raises(ValueError, match="Must pass mesh if passing multiple ProcessGroups"):
        DeviceMesh.from_group([group], "cpu")
    for groups, ranks in (([group], [[5, 6], [7, 8]]), ([group, other], [5, 7]), (group, [[5, 7]])):
        with pytest.raises(ValueError, match="ndim equal to number of ProcessGroups"):
            DeviceMesh.from_group(groups, "cpu", ranks)


class Known:
    """A group that has been made."""

    def __init__(self, ranks):
        self._ranks = ranks


def test_meshes_that_are_equal(job, monkeypatch):
    make = lambda names, kind="cpu", shape=(2, 3): init_device_mesh(kind, shape, mesh_dim_names=names)  # noqa: E731
    one = make(("a", "b"))
    assert one == make(("a", "b")) and hash(one) == hash(make(("a", "b"))) and one == one  # noqa: PLR0124
    for other in (make(("a", "c")), make(("a", "b"), "npu"), make(("a", "b"), "cpu", (3, 2)), make(None), 3):
        assert one != other
    assert repr(one) == "DeviceMesh([[0, 1, 2], [3, 4, 5]], device_type='cpu', mesh_dim_names=('a', 'b'))"
    mesh = make(("a", "b"), "cpu", (2, 4))
    known = dict.fromkeys([Known([3, 7]), Known([0, 4])])
    monkeypatch.setattr(device_mesh, "world", SimpleNamespace(pg_map=known))
    loaded = pickle.loads(pickle.dumps(mesh))
    assert loaded == mesh and loaded.get_coordinate() == [1, 3] and loaded._get_root_mesh() is loaded
    assert [g and g._ranks for g in loaded.get_all_groups()] == [[3, 7], None]
    monkeypatch.setattr(setup, "is_initialized", lambda: False)
    assert pickle.loads(pickle.dumps(mesh)).get_all_groups() == []


# ---- gradients that are compressed
class Bucket:
    """A bucket of gradients of DistributedDataParallel."""

    def __init__(self, *shapes, last=True, number=0):
        torch.manual_seed(len(shapes))
        self.flat = torch.randn(sum(torch.zeros(s).numel() for s in shapes))
        self.shapes, self.last, self.number = shapes, last, number

    def buffer(self):
        return self.flat

    def set_buffer(self, flat):
        self.flat = flat

    def index(self):
        return self.number

    def is_last(self):
        return self.last

    def gradients(self):
        parts = self.flat.split([torch.zeros(s).numel() for s in self.shapes])
        return [part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)]


@pytest.fixture
def doubled(monkeypatch):
    """A group of two ranks that have the same gradients. Notes the dtypes and sizes that are summed."""
    sums = []

    def all_reduce(tensor, op=ReduceOp.SUM, group=None, async_op=False):
        assert op == ReduceOp.SUM and group.size() == 2
        sums.append((tensor.dtype, tensor.numel()))
        tensor.mul_(2)
        return work.Work([tensor]) if async_op else None

    pair = SimpleNamespace(size=lambda: 2)
    for module in (default_hooks, powerSGD_hook):
        monkeypatch.setattr(module, "resolve", lambda group: pair)
        monkeypatch.setattr(module, "collectives", SimpleNamespace(all_reduce=all_reduce))
    return sums


def test_hooks_that_average(doubled):
    for hook, dtype, error in (
        (default_hooks.allreduce_hook, torch.float32, 0),
        (default_hooks.fp16_compress_hook, torch.float16, 1e-3),
        (default_hooks.bf16_compress_hook, torch.bfloat16, 1e-2),
    ):
        bucket = Bucket((3,), (2, 2))
        flat, before = bucket.flat, bucket.flat.clone()
        found = hook(None, bucket).wait()
        assert doubled.pop() == (dtype, 7) and found.data_ptr() == flat.data_ptr()
        assert found.dtype is torch.float32 and torch.allclose(found, before, atol=0, rtol=error)


def test_averages_over_subgroups(doubled, monkeypatch):
    groups = []
    monkeypatch.setattr(
        post_localSGD_hook, "allreduce_hook", lambda group, bucket: groups.append(group) or bucket
    )
    monkeypatch.setattr(post_localSGD_hook, "new_subgroups", lambda: ("made", ["made"]))
    state = post_localSGD_hook.PostLocalSGDState("all", None, 2)
    buckets = [Bucket((1,), last=False), Bucket((1,))]
    for _ in range(4):
        for bucket in buckets:
            assert post_localSGD_hook.post_localSGD_hook(state, bucket) is bucket
    assert groups == ["all"] * 4 + ["made"] * 4 and state.iter == 4
    alone = post_localSGD_hook.PostLocalSGDState("all", "sub", 0, post_local_gradient_allreduce=False)
    found = post_localSGD_hook.post_localSGD_hook(alone, buckets[1])
    assert found.done() and found.wait() is buckets[1].flat and len(groups) == 8


@pytest.mark.parametrize("feedback", [True, False])
@pytest.mark.parametrize("warm", [True, False])
def test_gradients_of_low_rank(doubled, feedback, warm):
    """The best approximation of rank 2 is found in a few steps, and the error comes back in the next one."""
    state = powerSGD_hook.PowerSGDState(
        None, 2, 2, min_compression_rate=1, use_error_feedback=feedback, warm_start=warm, random_seed=3
    )
    bucket = Bucket((6, 5), (4,))
    original = bucket.flat.clone()
    for step in (1, 2):  # the first steps are not compressed
        assert powerSGD_hook.powerSGD_hook(state, bucket).wait().data_ptr() == bucket.flat.data_ptr()
        assert doubled.pop() == (torch.float32, 34) and state.iter == step
        assert torch.allclose(bucket.flat, original) and not state.errors and not state.qs
    u, s, v = torch.linalg.svd(original[:30].view(6, 5), full_matrices=False)
    best = (u[:, :2] * s[:2]) @ v[:2]
    total = torch.zeros(34)
    for step in range(1, 31):
        bucket.flat.copy_(original)
        found = powerSGD_hook.powerSGD_hook(state, bucket).wait()
        assert doubled == [(torch.float32, 12), (torch.float32, 10), (torch.float32, 4)]
        doubled.clear()
        total += found
        assert torch.linalg.matrix_rank(found[:30].view(6, 5), tol=1e-4) == 2
        assert torch.allclose(found[30:], original[30:])
        if (
            feedback
        ):  # what was left out is added to the next step, so that the sums agree but for the last error
            assert torch.allclose(total + state.errors[0], original * step, atol=1e-4)
            assert state.errors[0][30:].abs().max() < 1e-5
    assert bool(state.errors) == feedback and set(state.qs) == ({(0, 0)} if warm else set())
    if warm and not feedback:
        assert torch.allclose(found[:30].view(6, 5), best, atol=1e-2)
    assert state.iter == 32


def test_the_first_matrices_of_a_seed(doubled):
    def first(seed):
        state = powerSGD_hook.PowerSGDState(None, 1, 2, min_compression_rate=1, random_seed=seed)
        state.iter = 2
        bucket = Bucket((6, 5), last=False)
        powerSGD_hook.powerSGD_hook(state, bucket).wait()
        assert state.iter == 2
        return bucket.flat

    torch.manual_seed(0)
    one = first(3)
    torch.manual_seed(1)
    assert torch.equal(one, first(3)) and not torch.allclose(one, first(4))
    for options in ({"use_error_feedback": True, "warm_start": False}, {"use_error_feedback": False}):
        with pytest.raises(ValueError, match="Expect `start_powerSGD_iter` > 1"):
            powerSGD_hook.PowerSGDState(None, 1, 1, **options)
    powerSGD_hook.PowerSGDState(None, 1, 1, use_error_feedback=False, warm_start=False)


def test_kinds_of_reductions_have_names():
    assert [ReduceOp.MAX.name, ReduceOp.MAX.value, ReduceOp(ReduceOp.AVG).name] == ["MAX", 4, "AVG"]
