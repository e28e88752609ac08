"""The class DTensor in one process: copies, conversions, gradients, and processes that are not in the mesh."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

import msadapter as torch
from msadapter import nn
from msadapter.distributed.device_mesh import DeviceMesh
from msadapter.distributed.tensor import DTensor, Partial, Replicate, Shard, _dtensor, distribute_tensor
from msadapter.distributed.tensor import empty as empty_dtensor
from msadapter.distributed.tensor._spec import checked_placements

R, S0, S1 = Replicate(), Shard(0), Shard(1)
X = torch.arange(6.0).reshape(3, 2)


@pytest.mark.parametrize("dim", [0, -1])
def test_the_shards_of_all_ranks(dim):
    """Megatron's tests divide tensors with this method of PyTorch's."""
    whole = X if dim == 0 else X.T
    shards, pads = Shard(dim)._split_tensor(whole, 4, with_padding=False, contiguous=True)
    assert [shard.shape[dim] for shard in shards] == [1, 1, 1, 0] and pads == []
    assert torch.equal(torch.cat(shards, dim), whole) and all(shard.is_contiguous() for shard in shards)
    padded, pads = Shard(dim)._split_tensor(whole, 4)
    assert pads == [0, 0, 0, 1] and {shard.shape for shard in padded} == {shards[0].shape}
    assert torch.equal(torch.cat(padded[:3], dim), whole) and (padded[3] == 0).all()


def test_copies(world, torch_by_name):
    d = distribute_tensor(X, world, [S0]).requires_grad_()
    d.note = ["kept"]
    (d * 2).sum().backward()
    assert d.grad is d.grad  # one object as long as the local gradient is the same
    first = d.grad
    d._local_tensor.grad = torch.ones(3, 2)
    assert d.grad is not first and d.grad.full_tensor().eq(1).all()
    made = copy.deepcopy([d, d])
    assert made[0] is made[1] and made[0] is not d and made[0].placements == (S0,) and made[0].requires_grad
    assert made[0].note == ["kept"] and made[0].note is not d.note
    assert made[0].data_ptr() == 0 and made[0]._local_tensor.data_ptr() != d._local_tensor.data_ptr()
    for value in (
        d,
        distribute_tensor(X, world, [R]),
        nn.Parameter(distribute_tensor(X, world, [S1]), False),
    ):
        loaded = pickle.loads(pickle.dumps(value))
        assert loaded.placements == value.placements and loaded.requires_grad == value.requires_grad
        assert torch.equal(loaded.full_tensor(), X) and loaded.device_mesh == world
        assert isinstance(loaded, nn.Parameter) == isinstance(value, nn.Parameter)
    large = torch.zeros(10000)
    part = DTensor.from_local(large[:4], world, [S0])
    stream = io.BytesIO()
    pickle.dump(part, stream)
    assert stream.tell() < 10000  # only this part of the storage


def test_conversions(world):
    one = distribute_tensor(torch.tensor([3]), world, [S0])
    assert one.item() == int(one) == 3 and float(one) == 3.0 and complex(one) == 3 and bool(one)
    assert [5, 6, 7, 8][one] == 8 and one.tolist() == [3]
    assert not bool(distribute_tensor(torch.tensor(0.0), world, [R]))
    d = distribute_tensor(X, world, [S0])
    assert d.tolist() == X.tolist() and d.is_cpu and not d.is_cuda and not d.is_meta and not d.is_npu
    for name in ("numpy", "set_", "resize_", "storage", "apply_", "map_", "__array__"):
        with pytest.raises(NotImplementedError, match=name):
            getattr(d, name)()
    moved = d.to(torch.float64)
    assert (
        moved.dtype is torch.float64 and moved.to_local().dtype is torch.float64 and d.to(torch.float32) is d
    )
    assert d.to("cpu", torch.float64).dtype is torch.float64
    both = d.to("meta", torch.float64)
    assert both.to_local().is_meta and both.dtype is torch.float64


def test_gradients(world):
    d = distribute_tensor(X, world, [S0]).requires_grad_()
    seen, after = [], []
    d.register_hook(lambda g: seen.append(g.placements) or g * 3)
    handle = d.register_hook(lambda g: seen.append("again"))
    d.register_post_accumulate_grad_hook(lambda t: after.append(t))
    (d * 2).sum().backward()
    assert seen == [(S0,), "again"] and d.grad.full_tensor().eq(6).all() and after[0] is d
    handle.remove()
    d.grad = None
    assert d.grad is None and d._local_tensor.grad is None
    (d * 2).sum().backward(retain_graph=True)
    assert seen == [(S0,), "again", (S0,)]
    d.requires_grad_(False)
    assert not d.requires_grad and d.is_leaf and d.grad_fn is None
    part = DTensor.from_local(X.clone().requires_grad_(), world, [Partial("avg")])
    part.sum().backward()
    assert part.to_local(grad_placements=[R]).shape == (3, 2)
    y = distribute_tensor(X, world, [S0]).requires_grad_()
    (grad,) = torch.autograd.grad((y * y).sum(), [y])
    assert grad.placements == (S0,) and torch.equal(grad.full_tensor(), 2 * X)
    plain = X.clone().requires_grad_()
    (grad,) = torch.autograd.grad(distribute_sum(plain, world), [plain])
    assert type(grad) is torch.Tensor and grad.eq(1).all()


def distribute_sum(plain, world):
    return DTensor.from_local(plain, world, [S0]).sum()


def test_moves_that_are_refused(world):
    d = distribute_tensor(X, world, [S0])
    other = DeviceMesh("cpu", [0], mesh_dim_names=("other",))
    for call, error, text in (
        (lambda: d.redistribute(world), RuntimeError, "placements is needed"),
        (lambda: d.redistribute(other, [R]), NotImplementedError, "Cross device mesh"),
        (
            lambda: d.redistribute(world, [Partial()]),
            RuntimeError,
            r"internal use only! \(mesh dimension 0\)",
        ),
        (
            lambda: d.redistribute(placements=[R], forward_dtype=torch.half),
            NotImplementedError,
            "forward_dtype",
        ),
        (
            lambda: d.redistribute(placements=[R], backward_dtype=torch.half),
            NotImplementedError,
            "backward_dt",
        ),
        (lambda: d + distribute_tensor(X, other, [R]), NotImplementedError, "on different device meshes"),
        (lambda: d + X, RuntimeError, "got mixed torch.Tensor and DTensor"),
        (lambda: distribute_tensor((X.clone().requires_grad_() * 2), world), RuntimeError, "non-leaf"),
    ):
        with pytest.raises(error, match=text):
            call()
    assert (
        (d + torch.tensor(1.0)).placements == (d + torch.ones(1)).placements == (S0,)
    )  # numbers are not parts
    part = DTensor.from_local(X, world, [Partial()])
    assert part.redistribute(placements=[Partial()]) is part
    assert checked_placements([Shard(-1)], world, 3) == (Shard(2),)
    assert checked_placements(None, world, 3) == (R,) and checked_placements([S0], world, 0) == (S0,)


@pytest.fixture
def elsewhere(world, monkeypatch):
    """A mesh of which this process is not part."""
    mesh = DeviceMesh("cpu", [0], mesh_dim_names=("there",))
    monkeypatch.setattr(mesh, "_place", None)
    return mesh


def test_processes_outside_of_the_mesh(elsewhere):
    d = distribute_tensor(X.double(), elsewhere, [S0])
    assert d.shape == (3, 2) and d.to_local().shape == (0,) and d.to_local().dtype is torch.float64
    made = DTensor.from_local(X, elsewhere, [R], shape=(3, 2), stride=(2, 1))
    assert made.shape == (3, 2) and made.to_local().shape == (0,)
    total = d + d
    assert total.shape == (3, 2) and total.placements == (S0,) and total.to_local().shape == (0,)
    assert total.dtype is total.to_local().dtype is torch.float64
    values, indices = d.topk(1, 1)
    assert values.shape == indices.shape == (3, 1) and indices.to_local().dtype is torch.int64
    assert d.redistribute(placements=[R]).placements == (R,) and d.mul_(2) is d
    assert empty_dtensor(3, 2, device_mesh=elsewhere, placements=[S0]).to_local().shape == (0,)


def test_meshes_of_blocks(world):
    with world:
        assert _dtensor._current_mesh() is world
        assert distribute_tensor(X).device_mesh is world and distribute_tensor(X).placements == (R,)
        assert DTensor.from_local(X).device_mesh is world and empty_dtensor(2, 3).shape == (2, 3)
    with pytest.raises(RuntimeError, match="No device mesh is currently active"):
        distribute_tensor(X)
