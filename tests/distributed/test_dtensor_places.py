"""DTensor where a process holds nothing, or what a mesh of one process never meets: empty parts, strided shards, factors."""

from __future__ import annotations

import gc
import itertools
import weakref
from types import SimpleNamespace

import pytest

import msadapter as torch
import msadapter.nn.functional as F
from msadapter.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    _class_loss,
    _dispatch,
    _dtensor,
    _special,
    _view_rules,
    distribute_tensor,
)
from msadapter.distributed.tensor._dtensor import wrap
from msadapter.distributed.tensor._spec import checked_placements
from msadapter.distributed.tensor.placement_types import _StridedShard
from msadapter.ops import declarations

R, S0, S1 = Replicate(), Shard(0), Shard(1)


class Mesh:
    """A mesh as one of its ranks sees it. Nothing can be sent."""

    def __init__(self, sizes, place):
        self.sizes, self.place, self.ndim = sizes, list(place), len(sizes)

    def size(self, mesh_dim):
        return self.sizes[mesh_dim]

    def get_coordinate(self):
        return self.place

    def get_local_rank(self, mesh_dim):
        return self.place[mesh_dim]


def meshes(*sizes):
    return [Mesh(sizes, place) for place in itertools.product(*map(range, sizes))]


# ---- embeddings and losses of which some processes have no rows or classes
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("padding", [-1, 0, 2])
def test_an_embedding_with_fewer_rows_than_processes(dtype, padding):
    torch.manual_seed(0)
    table, indices = torch.randn(3, 2, dtype=dtype), torch.tensor([[2, 0, 1], [2, 2, 0]])
    found, gradients = [], []
    for mesh in meshes(4):
        mine = table[mesh.place[0] : mesh.place[0] + 1].clone().requires_grad_()
        weight = wrap(mine, mesh, (S0,), table.shape, table.stride())
        bound = {
            "weight": weight, "indices": indices, "padding_idx": padding, "scale_grad_by_freq": False,
        }  # fmt: skip
        made = _special._embedding(declarations["_embedding"], False, bound)
        assert made.placements == (Partial(),) and made.shape == (2, 3, 2) and made.stride() == (6, 2, 1)
        local = made._local_tensor
        assert local.dtype is dtype and local.shape == (2, 3, 2)
        found.append(local.detach())
        local.sum().backward()
        gradients.append(mine.grad)
    assert torch.equal(sum(found), F.embedding(indices, table)) and not found[3].any()
    whole = table.clone().requires_grad_()
    F.embedding(indices, whole, padding_idx=padding if padding >= 0 else None).sum().backward()
    assert torch.equal(torch.cat(gradients), whole.grad) and gradients[3].shape == (0, 2)


def test_an_embedding_cut_in_both_dims():
    table, indices = torch.arange(24.0).reshape(4, 6), torch.tensor([3, 0, 2])
    expected = F.embedding(indices, table)
    halves = {0: 0.0, 1: 0.0, 2: 0.0}
    for mesh in meshes(2, 3):
        i, j = mesh.place
        local = table[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].clone()
        weight = wrap(local, mesh, (S0, S1), table.shape, table.stride())
        bound = {"weight": weight, "indices": indices, "padding_idx": -1, "scale_grad_by_freq": False}
        made = _special._embedding(declarations["_embedding"], False, bound)
        assert made.placements == (Partial(), Shard(1)) and made.shape == (3, 6)
        halves[j] = halves[j] + made._local_tensor
    assert torch.equal(torch.cat([halves[j] for j in range(3)], 1), expected)


def test_class_scores_of_a_process_without_classes():
    scores, target = torch.arange(6.0).reshape(2, 3), torch.tensor([2, 0])
    found = []
    for mesh in meshes(4):
        local = scores[:, mesh.place[0] : mesh.place[0] + 1]
        shifted = SimpleNamespace(shape=scores.shape, placements=(S1,), _local_tensor=local)
        made = _class_loss._picked(shifted, target, mesh)
        assert made.placements == (Partial(),) and made.shape == (2,) and made._local_tensor.shape == (2,)
        found.append(made._local_tensor)
    assert sum(found).tolist() == [2.0, 3.0] and found[3].tolist() == [0, 0]


# ---- placements
def test_numbers_of_shards():
    for placements, count in (((S0, S1), 6), ((S0, R), 2), ((R, S0), 3), ((R, Partial()), 1), ((R, R), 1)):
        local = wrap(torch.ones(1, 1), meshes(2, 3)[0], placements, (6, 6), (6, 1))
        assert local._spec.num_shards == count
    assert local._spec.is_replicated() and local._spec.ndim == 2 and local._spec.shape == (6, 6)


def test_dims_counted_from_the_end():
    mesh = meshes(2, 3)[0]
    made = checked_placements([_StridedShard(-2, split_factor=3), Shard(-1)], mesh, 2)
    assert made == (_StridedShard(0, split_factor=3), S1) and made[0].split_factor == 3
    assert checked_placements(None, mesh, 2) == (R, R)
    assert checked_placements([S0, S0], mesh, 0) == (S0, S0)
    for wrong, said in (
        ([Shard(2), R], "Sharding dim 2 greater than tensor ndim 2"),
        ([Shard(-3), R], "Sharding dim -3 greater than tensor ndim 2"),
        ([0, R], "must be a Shard, Replicate or Partial, but got 0"),
    ):
        with pytest.raises(RuntimeError, match=said):
            checked_placements(wrong, mesh, 2)
    with pytest.raises(ValueError, match="length: 1, and device_mesh.ndim: 2"):
        checked_placements([R], mesh, 2)


# ---- operators
@pytest.mark.parametrize("factor", [3.0, torch.tensor(3.0), "replicated"])
def test_all_tensors_of_a_list_are_scaled(world, factor):
    factor = distribute_tensor(torch.tensor(3.0), world, [R]) if factor == "replicated" else factor
    plain = torch.ones(2)
    tensors = [distribute_tensor(torch.ones(2), world, [S0]), plain]
    _special._scale_all(declarations["_scale_all_"], True, {"tensors": tensors, "factor": factor})
    assert tensors[0].full_tensor().tolist() == [3, 3] and plain.tolist() == [3, 3]


def test_in_place_operators_of_whole_tensors(world):
    """An operator without a rule needs the whole tensor. It can only write to one that every process has."""
    whole = next(d for d in declarations.values() if d.facts.whole and not d.facts.random)
    kept = {}

    def put(declaration, inplace, bound):
        assert inplace and type(bound["self"]) is torch.Tensor
        kept["self"] = bound["self"].mul_(2)
        return bound["self"]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_special, "call_plain", put)
        d = distribute_tensor(torch.ones(2, 2), world, [R])
        assert _special._whole(whole, True, {"self": d}) is d and d.full_tensor().eq(2).all()
        cut = distribute_tensor(torch.ones(2, 2), world, [S0])
        with pytest.raises(RuntimeError, match="in-place operations that require placement changes"):
            _special._whole(whole, True, {"self": cut})
        assert cut.full_tensor().eq(1).all()


def test_views_without_elements_and_whole_slices(world):
    empty = distribute_tensor(torch.zeros(0, 4), world, [R])
    assert empty.view(2, 0, 7).shape == (2, 0, 7) and empty.view(0).placements == (R,)
    cut = distribute_tensor(torch.zeros(0, 4), world, [S0])
    assert cut.view(4, 0).shape == (4, 0)
    d = distribute_tensor(torch.arange(12.0).reshape(4, 3), world, [S0])
    assert d[:].placements == d[0:4].placements == (S0,) and d[:, 1:].placements == (S0,)
    for found, expected in ((d[::2], [0, 2]), (d[:], range(4)), (d[::4], [0]), (d[1:], [1, 2, 3])):
        assert found.full_tensor()[:, 0].tolist() == [3.0 * i for i in expected]


def test_rules_of_slices():
    """A dim that is sliced stays cut only if all of it is taken, in order."""

    def rule(shape, out, step):
        call = SimpleNamespace(
            operands=[torch.ones(shape)],
            here=lambda operand: R,
            outs=[SimpleNamespace(shape=torch.Size(out))],
            bound={"dim": -2, "step": step},
        )
        return [(s.ins[0].dim, s.outs[0].dim) for s in _slice(call) if s.ins[0].is_shard()]

    _slice = _dispatch.RULES["_slice"]
    assert rule((4, 3), (4, 3), 1) == [(0, 0), (1, 1)]
    assert rule((4, 3), (2, 3), 2) == rule((4, 3), (2, 3), 1) == [(1, 1)]
    assert rule((1, 3), (1, 3), 2) == [(1, 1)]


def test_parts_that_cannot_be_viewed_are_copied():
    plan = SimpleNamespace(described=[SimpleNamespace(shape=(6,))])
    bound = {"size": (6,), "self": SimpleNamespace(shape=(2, 3))}
    for local in (torch.arange(6.0).reshape(3, 2).t(), torch.arange(6.0).reshape(2, 3)):
        arguments = {"self": local, "size": (6,)}
        _view_rules._local_view(arguments, plan, bound)
        made = arguments["self"]
        assert arguments["size"] == [6] and made.is_contiguous() and torch.equal(made, local)
        assert (made is local) == local.is_contiguous()


# ---- gradients
def test_gradients_of_averages(world, monkeypatch):
    """Each part of an average gets its share of the gradient."""
    monkeypatch.setattr(_dtensor, "average_parts", lambda placements, mesh: 4)
    x = distribute_tensor(torch.ones(2), world, [R])
    local = _dtensor.local_pass([x], [distribute_tensor(torch.full((2,), 8.0), world, [R])], [])[1]
    assert local[0].tolist() == [2, 2]
    scalar = distribute_tensor(torch.tensor(1.0), world, [R]).requires_grad_()
    assert _dtensor.local_pass([scalar], [None], [])[1][0].item() == 0.25
    monkeypatch.undo()
    plain = torch.ones(2)
    given = [plain, distribute_tensor(torch.ones(2), world, [R])]
    tensors, grads, inputs, results = _dtensor.local_pass(given, [plain * 3, None], given)
    assert grads[0].tolist() == [3, 3] and grads[1] is None and tensors[0] is plain is inputs[0]
    made = results([plain, plain])
    assert made[0] is plain and isinstance(made[1], DTensor) and results([None, None]) == (None, None)
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        _dtensor.local_pass([given[1].requires_grad_()], [None], [])
    with pytest.raises(RuntimeError, match="the gradient of a DTensor must be a DTensor"):
        _dtensor.local_pass([given[1]], [plain], [])


def test_gradients_are_freed(world):
    x = distribute_tensor(torch.ones(2), world, [R]).requires_grad_()
    (x * 2).sum().backward()
    kept = weakref.ref(x.grad)
    assert kept() is x.grad
    x.grad = None
    gc.collect()
    assert kept() is None
