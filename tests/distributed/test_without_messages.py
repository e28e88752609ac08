"""Parts of torch.distributed that compute without messages, for ranks and meshes that one process does not have."""

from __future__ import annotations

import io
import pickle
from datetime import timedelta
from types import SimpleNamespace

import pytest

import msadapter as torch
import msadapter.distributed as dist
from msadapter import nn
from msadapter.distributed import (
    ReduceOp,
    agent,
    collectives,
    debug,
    device_mesh,
    hccl_backend,
    mpi_buffers,
    setup,
)
from msadapter.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from msadapter.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import _orthogonalized, _rank_of
from msadapter.distributed.algorithms.model_averaging.utils import get_params_to_average
from msadapter.distributed.checkpoint import FileSystemReader
from msadapter.distributed.checkpoint.metadata import MetadataIndex
from msadapter.distributed.checkpoint.planner import LoadItemType, ReadItem
from msadapter.distributed.fsdp.wrap import _ConfigAutoWrap, _post_order_apply, enable_wrap, wrap
from msadapter.distributed.tensor import Partial, Replicate, Shard
from msadapter.distributed.tensor._spec import cuts, local_shape_and_offset
from msadapter.distributed.tensor._utils import compute_global_tensor_info
from msadapter.distributed.tensor.placement_types import _StridedShard

R, S0, S1 = Replicate(), Shard(0), Shard(1)


class Names:
    """Gives the name of each attribute, as MPI's module has one for each operation and type."""

    buffer = SimpleNamespace(fromaddress=lambda address, size: (address, size))

    def __getattr__(self, name):
        return name


# ---- MPI's arguments
def test_operations_of_mpi():
    def op_of(op, dtype):
        return mpi_buffers.mpi_op(Names(), getattr(ReduceOp, op), dtype)

    plain = {op: op for op in ("SUM", "MIN", "MAX", "BAND", "BOR", "BXOR")} | {
        "AVG": "SUM",
        "PRODUCT": "PROD",
    }
    logical = dict.fromkeys(("SUM", "MAX", "BOR"), "LOR") | dict.fromkeys(("PRODUCT", "MIN", "BAND"), "LAND")
    for dtype, names in ((torch.int32, plain), (torch.bool, logical | {"BXOR": "LXOR"})):
        assert {op: op_of(op, dtype) for op in names} == names
    assert op_of("AVG", torch.complex64) == op_of("SUM", torch.float32) == "SUM"
    for op in ("BAND", "BOR", "BXOR"):
        for dtype in (torch.float32, torch.complex64):
            with pytest.raises(RuntimeError, match=f"Cannot use ReduceOp.{op} with non-integral dtype"):
                op_of(op, dtype)
    for op in ("MAX", "MIN", "PRODUCT"):
        with pytest.raises(ValueError, match="on complex tensors"):
            op_of(op, torch.complex128)
    with pytest.raises(RuntimeError, match="Cannot use ReduceOp.AVG with Bool"):
        op_of("AVG", torch.bool)


def test_memory_of_tensors():
    x = torch.arange(3, dtype=torch.int16)
    assert mpi_buffers.memory(Names(), x) == [(x.data_ptr(), 6), 6, "BYTE"]
    assert mpi_buffers.typed(Names(), x) == [(x.data_ptr(), 6), 3, "INT16_T"]
    none = torch.empty(0)
    assert mpi_buffers.memory(Names(), none) == [None, 0, "BYTE"]
    assert mpi_buffers.typed(Names(), none) == [None, 0, "FLOAT"]


def test_what_mpi_reduces():
    x = torch.tensor([1.0, 2.0])
    assert mpi_buffers.reducible(x, ReduceOp.SUM).data_ptr() == x.data_ptr()
    half = mpi_buffers.reducible(x.bfloat16(), ReduceOp.SUM)
    assert half.dtype == torch.float32 and half.tolist() == [1, 2]
    assert mpi_buffers.reducible(x, dist._make_nccl_premul_sum(0.5)).tolist() == [0.5, 1]
    assert mpi_buffers.reducible(torch.ones(4)[::2], ReduceOp.SUM).is_contiguous()


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64])
def test_averages_and_copies(dtype):
    result = torch.tensor([-7, 9], dtype=dtype)
    target = torch.zeros(2, 2, dtype=dtype)[:, 1]
    mpi_buffers.settle(result, target, ReduceOp.AVG, 2)
    expected = [-3, 4] if dtype == torch.int64 else [-3.5, 4.5]
    assert target.tolist() == result.tolist() == expected
    mpi_buffers.settle(result, result, ReduceOp.SUM, 2)
    assert result.tolist() == expected


@pytest.mark.parametrize("contiguous", [True, False])
@pytest.mark.parametrize("op", [ReduceOp.SUM, ReduceOp.AVG])
def test_sums_of_parts(monkeypatch, contiguous, op):
    """Rows of 16-bit floats are added in float32, piece by piece."""
    monkeypatch.setattr(mpi_buffers, "_PIECE", 4)
    parts = (torch.arange(30.0).reshape(3, 10) * 100 + 1).to(torch.bfloat16)
    target = torch.zeros(10, dtype=torch.bfloat16) if contiguous else torch.zeros(10, 2).bfloat16()[:, 0]
    mpi_buffers.sum_parts(parts, target, op)
    total = parts.float().sum(0)
    assert target.equal((total / 3 if op == ReduceOp.AVG else total).to(torch.bfloat16))


def test_rooms_are_used_again(monkeypatch):
    rooms, like = mpi_buffers.Rooms(), torch.zeros(1)
    first, kept = rooms.take(like, 2, 5)
    assert first.shape == (2, 5)
    rooms.give(kept)
    small, other = rooms.take(like, 1, 2)  # a room of ten is too large for two elements
    assert other.data_ptr() != kept.data_ptr() and small.shape == (1, 2)
    assert rooms.take(like.double(), 2, 5)[1].data_ptr() != kept.data_ptr()
    assert rooms.take(like, 1, 3)[1].data_ptr() == kept.data_ptr()
    assert rooms.take(like, 1, 3)[1].data_ptr() != kept.data_ptr()  # it is in use
    monkeypatch.setattr(mpi_buffers, "_KEPT", 40)
    for size in (3, 10, 11, 4):
        rooms.give(torch.empty(size))
    assert [room.numel() for room in rooms._spare] == [4, 10]


def test_one_room_for_several_tensors():
    base = torch.arange(6.0)
    flat, unpack = mpi_buffers.room([base])
    assert unpack is None and flat.data_ptr() == base.data_ptr()
    flat, unpack = mpi_buffers.room([base[:2], base[2:3], base[3:]])
    assert unpack is None and flat.data_ptr() == base.data_ptr() and flat.numel() == 6
    for apart in ([base[:2], base[3:]], [base[2:], base[:2]], [base[::2]], [base[:2], torch.zeros(2)]):
        before = base.clone()
        flat, unpack = mpi_buffers.room(apart)
        assert flat.numel() == sum(x.numel() for x in apart)
        flat.copy_(torch.arange(flat.numel()) + 10.0)
        assert base.equal(before)
        unpack()
        assert torch.cat(apart).equal(flat)
        base.copy_(before)
    assert mpi_buffers.packed([base[::2], base[:1]]).tolist() == [0, 2, 4, 0]
    assert mpi_buffers.packed([base[::2]]).tolist() == [0, 2, 4]


# ---- HCCL, which does not reduce every dtype
def test_reductions_on_the_host(monkeypatch):
    class Comm:
        @staticmethod
        def all_gather_into_tensor(out, own, group):
            other = (torch.tensor([4.0, -2.0], dtype=torch.float64)).view(torch.int8)
            out.copy_(torch.cat([own, other]))

    monkeypatch.setattr(hccl_backend, "_comm", Comm)
    monkeypatch.setattr(hccl_backend, "_REDUCED", ())
    for rank in (0, 1):
        backend = hccl_backend.HcclBackend(rank, [4, 6], "pair", None)
        for op, expected in (
            (ReduceOp.SUM, [5, 0]),
            (ReduceOp.AVG, [2.5, 0]),
            (ReduceOp.PRODUCT, [4, -4]),
            (ReduceOp.MIN, [1, -2]),
            (ReduceOp.MAX, [4, 2]),
        ):
            x = torch.tensor([1.0, 2.0], dtype=torch.float64)
            backend.allreduce(x, op).wait()
            assert x.tolist() == expected
            for root in (0, 1):
                x = torch.tensor([1.0, 2.0], dtype=torch.float64)
                backend.reduce(x, root, op).wait()
                assert x.tolist() == (expected if root == rank else [1, 2])


# ---- meshes
class Mesh:
    def __init__(self, shape, place):
        self.shape, self.place, self.ndim = shape, place, len(shape)

    def size(self, dim):
        return self.shape[dim]

    def get_coordinate(self):
        return self.place


def test_parts_of_a_tensor_on_a_mesh_of_two_dims():
    def parts(shape, placements, sizes=(2, 3)):
        places = [[i, j] for i in range(sizes[0]) for j in range(sizes[1])]
        return [local_shape_and_offset(shape, Mesh(sizes, place), placements) for place in places]

    assert parts((7, 5), (S0, R)) == [((4, 5), (0, 0))] * 3 + [((3, 5), (4, 0))] * 3
    assert parts((7, 4), (S0, S1)) == [
        ((rows, columns), (top, left))
        for rows, top in ((4, 0), (3, 4))
        for columns, left in ((2, 0), (2, 2), (0, 4))
    ]
    assert [p[0][0] for p in parts((7,), (S0, S0))] == [2, 2, 0, 1, 1, 1]
    assert [p[1][0] for p in parts((7,), (S0, S0))] == [0, 2, 7, 4, 5, 6]
    strided = (_StridedShard(0, split_factor=3), S0)  # the second dim of the mesh cuts first
    assert [p[0][0] for p in parts((12,), strided)] == [2] * 6
    assert [p[1][0] for p in parts((12,), strided)] == [0, 4, 8, 2, 6, 10]
    assert cuts(strided, Mesh((2, 3), None)) == {0: [1, 0]} and cuts((S0, S1), Mesh((2, 3), None)) == {
        0: [0],
        1: [1],
    }
    with pytest.raises(RuntimeError, match="do not define how mesh dimension 0 shards"):
        cuts((_StridedShard(0, split_factor=6), S1), Mesh((2, 3), None))
    assert local_shape_and_offset((7,), Mesh((2, 3), None), (S0, R)) == ((0,), ())


def test_the_whole_of_equal_parts():
    mesh = Mesh((2, 3), [0, 0])
    x = torch.zeros(4, 5)
    assert compute_global_tensor_info(x, mesh, (S0, R)) == ([8, 5], [5, 1])
    assert compute_global_tensor_info(x, mesh, (S1, Shard(-2))) == ([12, 10], [10, 1])
    assert compute_global_tensor_info(x.t(), mesh, (S1, Partial())) == ([5, 8], [1, 5])
    assert compute_global_tensor_info(x.t(), mesh, (S0, R)) == ([10, 4], [1, 10])


def test_lines_and_slices_of_a_mesh():
    ranks = [[[0, 1], [2, 3], [4, 5]], [[6, 7], [8, 9], [10, 11]]]
    assert device_mesh._lines(ranks, (2, 3, 2), 1) == [[0, 2, 4], [1, 3, 5], [6, 8, 10], [7, 9, 11]]
    assert device_mesh._lines(ranks, (2, 3, 2), 0)[-1] == [5, 11]
    assert device_mesh._slice(ranks, [1, 2, 0], (0, 2)) == [[4, 5], [10, 11]]
    assert device_mesh._slice(ranks, [1, 2, 0], (1,)) == [6, 8, 10]
    assert device_mesh._slice(ranks, [1, 2, 1], ()) == 11


# ---- starting
def test_stores_of_a_job(monkeypatch):
    made, held = [], dist.HashStore()
    monkeypatch.setattr(setup, "TCPStore", lambda *a, **k: made.append((a, k)) or held)
    monkeypatch.delenv("TORCHELASTIC_USE_AGENT_STORE", raising=False)
    wait = timedelta(seconds=3)
    for rank, world, host in ((0, 1, "127.0.0.1"), (0, 2, "far"), (1, 2, "far")):
        assert setup._tcp_store("far", 29, rank, world, wait) is held
        (where, options), made[:] = made[0], []
        assert where == (host, 29, world) and options == {
            "is_master": rank == 0,
            "timeout": wait,
            "multi_tenant": True,
            "wait_for_workers": False,
        }
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", "True")
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "2")
    store = setup._tcp_store("far", 29, 0, 1, wait)
    assert made == [(("far", 29), {"timeout": wait})]
    assert type(store).__name__ == "PrefixStore" and "/worker/attempt_2" in vars(store).values()


def test_names_of_backends():
    names = ("gloo", "NCCL", None, "cpu:gloo,cuda:nccl", "cpu:gloo,npu:hccl", "cpu:mpi")
    assert [setup._backend_name(n) for n in names] == ["gloo", "nccl", "nccl", "nccl", "hccl", "mpi"]
    with pytest.raises(ValueError, match="Invalid backend: 'other'"):
        setup._backend_name("other")


def test_keys_that_a_store_lacks():
    store = dist.HashStore()
    store.set("a", b"1")
    with pytest.raises(dist.DistStoreError, match="wait timeout after 10ms, keys: b, c$"):
        store.wait(["a", "b", "c"], timedelta(milliseconds=10))


# ---- checks that ranks do together
def test_who_is_late_at_a_barrier():
    """Two ranks that share a store, one after the other. Every barrier has keys of its own."""
    store = dist.HashStore()
    first, second = (
        SimpleNamespace(size=lambda: 2, rank=lambda r=r: r, _ranks=[4, 6], store=store, timeout=0.01)
        for r in (0, 1)
    )
    with pytest.raises(RuntimeError, match=r"\[Rank 4\]: Rank 6 failed to pass monitoredBarrier in 10 ms"):
        debug.monitored_barrier(first)
    with pytest.raises(RuntimeError, match=r"\[Rank 6\]: Rank 6 successfully reached"):
        debug.monitored_barrier(second)
    store.set("monitored/2/arrived/1", b"1")
    debug.monitored_barrier(first, wait_all_ranks=True)
    debug.monitored_barrier(second)
    with pytest.raises(RuntimeError, match="Ranks 6 failed to pass"):
        debug.monitored_barrier(first, timedelta(milliseconds=5), wait_all_ranks=True)


@pytest.mark.parametrize(
    ("value", "told"), [(None, False), ("DETAIL", True), ("detail", True), ("INFO", False)]
)
def test_when_calls_are_compared(monkeypatch, value, told):
    monkeypatch.delenv("TORCH_DISTRIBUTED_DEBUG", raising=False)
    if value is not None:
        monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", value)
    assert debug.detail() is told


# ---- reading checkpoints
def _reader(tmp_path, *, saved, **place):
    """A reader of a file that contains one object, the item that asks for it, and the planner's tensor."""
    stream = io.BytesIO()
    torch.save(saved, stream)
    index = MetadataIndex("w")
    whole = {"offset": 0, "length": len(stream.getvalue()), "transform_descriptors": None} | place
    reader = FileSystemReader(tmp_path)
    reader.storage_data = {index: SimpleNamespace(**whole)}
    nothing, sizes = torch.Size([0]), torch.Size([2])
    item = ReadItem(LoadItemType.TENSOR, index, nothing, index, nothing, sizes)
    return reader, stream, item


def _read(reader, stream, item, target):
    planner = SimpleNamespace(resolve_tensor=lambda item: target, commit_tensor=lambda item, tensor: None)
    reader._read_items(stream, [item], planner)


class NotATensor:
    """What a file may not contain."""


def test_what_a_reader_refuses(tmp_path):
    target = torch.zeros(2)
    _read(*_reader(tmp_path, saved=torch.tensor([1.0, 2.0, 3.0])), target)
    assert target.tolist() == [1, 2]
    with pytest.raises(AssertionError, match=r"mismatch sizes torch.Size\(\[3\]\) vs torch.Size\(\[2\]\)"):
        _read(*_reader(tmp_path, saved=torch.ones(3)), torch.zeros(3))
    with pytest.raises(pickle.UnpicklingError):
        _read(*_reader(tmp_path, saved=NotATensor()), target)
    with pytest.raises(NotImplementedError, match="stream extensions"):
        _read(*_reader(tmp_path, saved=torch.ones(3), transform_descriptors=["zip"]), target)
    assert target.tolist() == [1, 2]


# ---- arguments
def test_lists_with_one_wrong_element():
    t = torch.ones(1)
    for wrong in ([t, 3], [3, t], (t, None), t, {t}):
        with pytest.raises(TypeError, match="of type List"):
            collectives._check_list(wrong, "tensors")
    collectives._check_list((t, t), "tensors")
    assert collectives._check_list([], "tensors") is None


def test_parameters_that_are_averaged():
    a, b, c = (nn.Parameter(torch.ones(1)) for _ in range(3))
    a.grad = c.grad = torch.ones(1)
    assert [p is q for p, q in zip(get_params_to_average([a, b, c]), (a, c), strict=True)] == [True, True]
    groups = torch.optim.SGD([{"params": [b, a]}, {"params": [c]}]).param_groups
    assert [p is q for p, q in zip(get_params_to_average(groups), (a, c), strict=True)] == [True, True]


def test_secrets_of_a_job(monkeypatch):
    monkeypatch.setattr(agent, "secret_of_environment", lambda: None)
    for nodes, given, host in (
        (1, None, "127.0.0.1"),
        (1, b"own", "127.0.0.1"),
        (2, b"own", "far"),
        (2, None, "far"),
    ):
        job = SimpleNamespace(nodes=nodes, secret=given, host="far")
        agent.Agent(job)
        assert job.host == host and (job.secret == given or (nodes == 1 and len(job.secret) == 64))
    monkeypatch.setattr(agent, "secret_of_environment", lambda: b"environment")
    job = SimpleNamespace(nodes=2, secret=None, host="far")
    agent.Agent(job)
    assert job.secret == b"environment"


# ---- gradients that are compressed
def test_steps_of_compression():
    state = powerSGD_hook.PowerSGDState(None, 1)
    for last in (False, True, False, True):
        state.maybe_increase_iter(SimpleNamespace(is_last=lambda last=last: last))
    assert state.iter == 2


def test_orthogonal_columns():
    matrix = torch.tensor([[3.0, 1.0], [4.0, 2.0], [0.0, 5.0]])
    for epsilon in (0, 1e-8):
        q = _orthogonalized(matrix, epsilon)
        torch.testing.assert_close(q.t() @ q, torch.eye(2), atol=1e-5, rtol=0)
        torch.testing.assert_close(q @ (q.t() @ matrix), matrix, atol=1e-5, rtol=0)
    assert _orthogonalized(torch.ones(2, 2), 1e-8).isfinite().all()
    assert _orthogonalized(torch.tensor([[3.0], [4.0]]), 5.0).tolist() == [
        [0.30000001192092896],
        [0.4000000059604645],
    ]


def test_ranks_of_compressed_gradients():
    state = SimpleNamespace(matrix_approximation_rank=2, min_compression_rate=2)
    shapes = {(8,): 0, (10, 10): 2, (8, 8): 0, (9, 8): 2, (40, 1): 0, (2, 5, 40): 0, (6, 5, 40): 2}
    assert {shape: _rank_of(state, torch.zeros(shape)) for shape in shapes} == shapes


# ---- wrapped modules
def test_blocks_that_wrap():
    with enable_wrap(wrapper_cls=nn.Sequential):
        assert isinstance(wrap(nn.Linear(1, 1)), nn.Sequential)
        again = enable_wrap(wrapper_cls=nn.Sequential)
        with pytest.raises(NotImplementedError, match="already within an autowrap context"):
            again.__enter__()
    assert (_ConfigAutoWrap.in_autowrap_context, _ConfigAutoWrap.wrapper_cls, _ConfigAutoWrap.kwargs) == (
        False,
        None,
        {},
    )
    with pytest.raises(AssertionError, match="Expected to pass in wrapper_cls"), _ConfigAutoWrap():
        pass


def test_modules_are_replaced_children_first():
    tree = nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh())
    seen = []

    def fn(module):
        seen.append(type(module).__name__)
        return nn.GELU() if isinstance(module, nn.ReLU) else None

    _post_order_apply(tree, fn)
    assert seen == ["ReLU", "Sequential", "Tanh", "Sequential"] and isinstance(tree[0][0], nn.GELU)
    with pytest.raises(AssertionError, match="should only be replaced with modules"):
        _post_order_apply(tree, lambda module: 3)
    with pytest.raises(AssertionError, match="should have their parent module set"):
        _post_order_apply(nn.ReLU(), lambda module: nn.GELU())
