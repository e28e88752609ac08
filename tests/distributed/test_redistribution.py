"""Redistribution of tensors on a mesh of two dims: six threads play its ranks, and hand each other what they would send."""

from __future__ import annotations

import itertools

import pytest

import msadapter as torch
from msadapter.distributed import ReduceOp
from msadapter.distributed.tensor import Partial, Replicate, Shard, _redistribute
from msadapter.distributed.tensor._spec import gradient_placements, local_shape_and_offset
from msadapter.distributed.tensor.placement_types import _StridedShard
from tests.distributed.played import JOINS, Collectives, Group, Line, at_once

SIZES = (2, 3)
PLACES = list(itertools.product(*map(range, SIZES)))
R, S0, S1 = Replicate(), Shard(0), Shard(1)
SUM, AVG, MAX, MIN = (Partial(kind) for kind in ("sum", "avg", "max", "min"))
SHARES = {2: (0.25, 0.75), 3: (0.5, -0.25, 0.75)}  # of the ranks along a mesh dim, in a sum


class Mesh:
    """The mesh as one of its ranks sees it."""

    ndim = 2

    def __init__(self, place, lines):
        self.place, self.lines, self.messages = place, lines, []

    def size(self, mesh_dim):
        return SIZES[mesh_dim]

    def get_coordinate(self):
        return list(self.place)

    def get_local_rank(self, mesh_dim):
        return self.place[mesh_dim]

    def get_group(self, mesh_dim):
        line = self.lines[mesh_dim, self.place[1 - mesh_dim]]

        return Group(line, self.place[mesh_dim], note=lambda name: self.messages.append((name, mesh_dim)))


def played(program):
    """The results of program(mesh) of all ranks, which run at the same time."""
    lines = {(d, other): Line(SIZES[d]) for d in (0, 1) for other in range(SIZES[1 - d])}
    return at_once(program, [Mesh(place, lines) for place in PLACES], lines.values())


def part_of(whole, mesh, placements):
    """What a rank holds of a tensor."""
    shape, offsets = local_shape_and_offset(tuple(whole.shape), mesh, placements)
    for dim, (length, start) in enumerate(zip(shape, offsets, strict=True)):
        whole = whole.narrow(dim, min(start, whole.size(dim)), length)
    for mesh_dim, placement in enumerate(placements):
        if placement.is_partial():
            count, me = SIZES[mesh_dim], mesh.place[mesh_dim]
            share = SHARES[count][me]
            kind = placement.reduce_op
            far = (me != 1) * (1 if kind == "min" else -1)
            whole = {
                "sum": lambda x, s=share: x * s,
                "avg": lambda x, s=share, n=count: x * s * n,
                "product": lambda x, first=me == 0: x if first else torch.ones_like(x),
            }.get(kind, lambda x, far=far: x + far)(whole)
    return whole.clone()


def combined(parts, placements):
    """Reduces the parts of all ranks, by place, along the mesh dims where they are partial."""
    for mesh_dim, placement in enumerate(placements):
        if placement.is_partial():
            op = ReduceOp.SUM if placement.reduce_op == "avg" else _redistribute._REDUCE[placement.reduce_op]
            made = {}
            for place in parts:
                line = [place[:mesh_dim] + (i,) + place[mesh_dim + 1 :] for i in range(SIZES[mesh_dim])]
                total = JOINS[op](torch.stack([parts[p] for p in line]))
                made[place] = total / SIZES[mesh_dim] if placement.reduce_op == "avg" else total
            parts = made
    return parts


@pytest.fixture(autouse=True)
def exchanged_by_threads(monkeypatch):
    monkeypatch.setattr(_redistribute, "collectives", Collectives)


SOURCES = [
    *itertools.product((R, S0, S1, SUM, AVG, MAX, MIN, Partial("product")), repeat=2),
    (_StridedShard(0, split_factor=3), S0),
]
TARGETS = [*itertools.product((R, S0, S1, SUM, AVG), repeat=2), (_StridedShard(0, split_factor=3), S0)]
PAIRS = list(itertools.product(SOURCES, TARGETS))


def _mixed(placements) -> bool:
    """Whether parts are reduced in two ways, of which the order matters."""
    kinds = {"sum" if p.reduce_op == "avg" else p.reduce_op for p in placements if p.is_partial()}
    return len(kinds) > 1


@pytest.mark.parametrize("shape", [(12, 6), (5, 4), (1, 7), (0, 3)], ids=str)
def test_values_stay_the_same(shape):
    whole = (torch.arange(shape[0] * shape[1], dtype=torch.float64) * 1.7).sin().reshape(shape) + 2

    def program(mesh):
        made = []
        for source, target in pairs:
            made.append(_redistribute.move(part_of(whole, mesh, source), mesh, shape, source, target))
        return made

    pairs = [(a, b) for a, b in PAIRS if not _mixed(a)]
    if shape[0] != 12:  # a strided shard needs parts of one size
        pairs = [(a, b) for a, b in pairs if not any(isinstance(p, _StridedShard) for p in (*a, *b))]
    for k, made in enumerate(zip(*played(program), strict=True)):
        source, target = pairs[k]
        bare = tuple(R if p.is_partial() else p for p in target)
        found = combined(dict(zip(PLACES, made, strict=True)), target)
        for place, local in found.items():
            wanted = part_of(whole, Mesh(place, {}), bare)
            assert local.shape == wanted.shape, (source, target, place)
            assert torch.allclose(local, wanted), (source, target, place)


def test_gradients_go_back():
    shape = (5, 4)
    whole = torch.arange(20.0, dtype=torch.float64).reshape(shape)
    gradient = whole.cos()
    pairs = [
        (a, b)
        for a, b in itertools.product(itertools.product((R, S0, S1, SUM, AVG), repeat=2), TARGETS[:-1])
        if a != b
    ]

    def program(mesh):
        made = []
        for source, target in pairs:
            local = part_of(whole, mesh, source).requires_grad_()
            moved = _redistribute.moved(local, mesh, shape, source, target)
            arriving = part_of(gradient, mesh, gradient_placements(target))
            moved.backward(arriving / _redistribute.average_parts(target, mesh))
            made.append(local.grad)
        return made

    for place, grads in zip(PLACES, played(program), strict=True):
        mesh = Mesh(place, {})
        for (source, target), grad in zip(pairs, grads, strict=True):
            wanted = part_of(gradient, mesh, gradient_placements(source))
            assert torch.allclose(grad, wanted / _redistribute.average_parts(source, mesh)), (source, target)


@pytest.mark.parametrize("source, target, messages", [
    ((R, R), (S0, S1), []), ((R, R), (SUM, S0), []), ((S0, S1), (S0, S1), []), ((R, R), (AVG, SUM), []),
    ((S0, R), (R, R), [("all_gather", 0)]), ((R, S1), (R, R), [("all_gather", 1)]),
    ((S0, S0), (S0, R), [("all_gather", 1)]), ((S0, S0), (R, R), [("all_gather", 1), ("all_gather", 0)]),
    ((S0, R), (S1, R), [("all_to_all", 0)]), ((S0, S1), (S0, S0), [("all_to_all", 1)]),
    ((SUM, R), (R, R), [("all_reduce", 0)]), ((R, SUM), (R, S0), [("reduce_scatter", 1)]),
    ((SUM, AVG), (S0, S1), [("reduce_scatter", 0), ("reduce_scatter", 1)]),
    ((MAX, R), (S0, R), [("all_reduce", 0)]), ((SUM, S1), (R, S1), [("all_reduce", 0)]),
    ((S0, S0), (S1, S0), [("all_gather", 1), ("all_gather", 0)]),
])  # fmt: skip
def test_what_is_sent(source, target, messages):
    whole = torch.ones(12, 6)

    def program(mesh):
        _redistribute.move(part_of(whole, mesh, source), mesh, (12, 6), source, target)
        return mesh.messages

    assert played(program) == [messages] * 6


def test_gradients_that_arrive_otherwise():
    """A gradient of which each rank has a summand is added up, and divided for an average."""
    whole = torch.arange(20.0, dtype=torch.float64).reshape(5, 4)

    def program(mesh):
        made = []
        for arriving, wanted, parts in (
            ((SUM, R), (R, R), 1),
            ((S0, SUM), (S0, R), 1),
            ((R, S0), (R, S0), 3),
        ):
            leaf = part_of(whole, mesh, wanted).requires_grad_()
            given = _redistribute.with_gradient_from(leaf, mesh, (5, 4), arriving, wanted, parts)
            given.backward(part_of(whole.cos(), mesh, arriving))
            made.append(torch.allclose(leaf.grad * parts, part_of(whole.cos(), mesh, wanted)))
        plain = torch.ones(2, requires_grad=True)
        made.append(_redistribute.with_gradient_from(plain, mesh, (2,), (R, R), (R, R)) is plain)
        other = torch.ones(2)
        made.append(_redistribute.with_gradient_from(other, mesh, (2,), (SUM, R), (R, R)) is other)
        return made

    assert played(program) == [[True] * 5] * 6
    leaf = torch.ones(4, requires_grad=True)
    for kind in (MAX, MIN):
        with pytest.raises(NotImplementedError, match="the gradient of Partial"):
            _redistribute.moved(leaf, Mesh((0, 0), {}), (4,), (kind, R), (R, R))
