"""Collectives that are made of others, in a group of three ranks that threads play: objects, gradients, averages."""

from __future__ import annotations

import pytest

import msadapter as torch
from msadapter.distributed import ReduceOp, objects
from msadapter.distributed import _functional_collectives as fc
from msadapter.distributed.algorithms.model_averaging import averagers
from msadapter.distributed.algorithms.model_averaging import utils as averaging
from msadapter.distributed.nn import functional
from tests.distributed.played import Collectives, played

RANKS = (4, 6, 9)


@pytest.fixture(autouse=True)
def exchanged_by_threads(monkeypatch):
    for module in (fc, functional, averaging):
        monkeypatch.setattr(module, "collectives", Collectives)
    for name in ("all_gather", "all_gather_single", "broadcast", "gather", "scatter"):
        monkeypatch.setattr(objects, name, getattr(Collectives, name))
    monkeypatch.setattr(objects, "not_in_group", lambda group, what: False)
    monkeypatch.setattr(
        objects,
        "_root",
        lambda group, rank, group_rank, what: Collectives._root(group, rank, group_rank or 0),
    )
    for module in (fc, functional, averaging, averagers, objects):
        monkeypatch.setattr(module, "resolve", lambda group: group)
    monkeypatch.setattr(fc, "_group", lambda group: group)
    monkeypatch.setattr(objects, "_device", lambda group: "cpu")


# ---- objects
def own(rank):
    return {"rank": rank, "text": "x" * (50 * rank)}


def test_objects_of_all():
    def program(group):
        found = [None] * 3
        objects.all_gather_object(found, own(group.me), group)
        gathered = [None] * 3 if group.me == 1 else None
        objects.gather_object(own(group.me), gathered, 6, group)
        last = [None] * 3 if group.me == 2 else None
        objects.gather_object(group.me, last, group=group, group_dst=2)
        return found, gathered, last

    every = [own(rank) for rank in range(3)]
    assert played(program, RANKS) == [(every, None, None), (every, every, None), (every, None, [0, 1, 2])]
    with pytest.raises(ValueError, match="must be specified on destination rank"):
        played(lambda group: objects.gather_object(1, None, group=group), (0,))


@pytest.mark.parametrize("where, root", [({}, 0), ({"src": 9}, 2), ({"group_src": 1}, 1)])
def test_objects_of_one(where, root):
    def program(group):
        given = [own(group.me), (group.me, "long" * 20), None]
        objects.broadcast_object_list(given, group=group, **where)
        found = ["before", "kept"]
        parts = [own(10 * group.me + k) for k in range(3)] if group.me == root else None
        objects.scatter_object_list(found, parts, group=group, **where)
        return given, found

    for me, (given, found) in enumerate(played(program, RANKS)):
        assert given == [own(root), (root, "long" * 20), None]
        assert found == [own(10 * root + me), "kept"]
    for wrong in ((), [], None):
        with pytest.raises(ValueError, match="to be a list of size at least 1"):
            objects.scatter_object_list(wrong, [1], group=None)


def test_messages_of_objects(monkeypatch):
    sent = []
    monkeypatch.setattr(objects, "send", lambda tensor, *where, **named: sent.append((tensor, where, named)))

    def recv(tensor, *where, **named):
        given, to, names = sent.pop(0)
        assert to == where and names == {"group_dst": named["group_src"]} and given.dtype == tensor.dtype
        tensor.copy_(given)
        return 9

    monkeypatch.setattr(objects, "recv", recv)
    for where in ((4, "group", None), (None, "group", 2)):
        objects.send_object_list([own(1), "b", None], where[0], where[1], group_dst=where[2])
        assert [t.numel() for t, _, _ in sent] == [3, int(sent[0][0].sum())]
        found = [None] * 3
        assert objects.recv_object_list(found, where[0], where[1], group_src=where[2]) == 9
        assert found == [own(1), "b", None] and sent == []


# ---- collectives that return tensors
X = torch.arange(12.0, dtype=torch.float64).reshape(6, 2)
ROWS = ([1, 2, 3], [0, 4, 2], [2, 2, 2])  # what each rank sends to each


def test_tensors_that_are_returned():
    def program(group):
        x = X + 100 * group.me
        made = [fc.all_reduce(x, name, group) for name in ("sum", "MAX", ReduceOp.MIN)]
        made += [fc.broadcast(x, 1, group), *(fc.all_gather_tensor(x, dim, group) for dim in (0, 1))]
        made += [
            fc.reduce_scatter_tensor(x, "sum", 0, group),
            fc.reduce_scatter_tensor(x.t(), "max", 1, group),
        ]
        back = [row[group.me] for row in ROWS]
        made += [
            fc.all_to_all_single(x, back, ROWS[group.me], group),
            fc.all_to_all_single(x, None, None, group),
        ]
        return made, x

    found = played(program, RANKS)
    given = [x for _, x in found]
    assert torch.equal(given[1], X + 100)  # the operands are left alone
    for me, (made, _) in enumerate(found):
        cut = slice(2 * me, 2 * me + 2)
        starts = [sum(row[:me]) for row in ROWS]
        wanted = [
            sum(given), given[2], given[0], given[1], torch.cat(given), torch.cat(given, 1), sum(given)[cut],
            given[2].t()[:, cut],
            torch.cat([x[a : a + row[me]] for x, a, row in zip(given, starts, ROWS, strict=True)]),
            torch.cat([x[cut] for x in given]),
        ]  # fmt: skip
        for k, (a, b) in enumerate(zip(made, wanted, strict=True)):
            assert torch.equal(a, b), k
    assert fc.wait_tensor(X) is X and fc.is_torchdynamo_compiling() is False


def test_gradients_of_returned_tensors():
    weight = X.cos()

    def program(group):
        grads = []

        def back(function, weighted):
            x = (X + group.me).requires_grad_()
            (function(x) * weighted(group.me)).sum().backward()
            grads.append(x.grad)

        def rows(me):
            return weight[:2] * (me + 1)

        received = [row[group.me] for row in ROWS]
        back(
            lambda x: fc.all_gather_tensor_autograd(x, 0, group),
            lambda me: torch.cat([weight] * 3) * (me + 1),
        )
        back(lambda x: fc.reduce_scatter_tensor_autograd(x, "sum", 0, group), rows)
        back(lambda x: fc.reduce_scatter_tensor_autograd(x, "avg", 0, group), rows)
        back(lambda x: fc.all_to_all_single_autograd(x, received, ROWS[group.me], group),
             lambda me: torch.full((sum(received), 2), me + 1.0).double())  # fmt: skip
        return grads

    for me, (gathered, summed, averaged, exchanged) in enumerate(played(program, RANKS)):
        assert torch.allclose(gathered, weight * 6)  # 1 + 2 + 3
        assert torch.allclose(summed, torch.cat([weight[:2] * k for k in (1, 2, 3)]))
        assert torch.allclose(averaged * 3, summed)
        assert torch.equal(
            exchanged[:, 0],
            torch.repeat_interleave(torch.tensor([1.0, 2, 3]), torch.tensor(ROWS[me])).double(),
        )
    with pytest.raises(NotImplementedError, match="the gradient of"):
        fc.reduce_scatter_tensor_autograd(X, "max", 0, None)


def test_gradients_of_collectives():
    weight = X.cos()

    def program(group):
        grads, me = [], group.me

        def back(function):
            x = (X + me).requires_grad_()
            made = function(x)
            total = sum((t * weight * (me + 1) * (k + 1)).sum() for k, t in enumerate(made))
            total.backward()
            grads.append(([t.detach() for t in made], x.grad))

        back(lambda x: [functional.all_reduce(x, ReduceOp.SUM, group)])
        back(lambda x: [functional.broadcast(x, 6, group)])
        back(lambda x: functional.all_gather(x, group))
        back(
            lambda x: functional.all_to_all([torch.empty_like(x) for _ in range(3)], [x, x * 2, x * 3], group)
        )
        return grads

    for me, (summed, cast, gathered, exchanged) in enumerate(played(program, RANKS)):
        assert torch.allclose(summed[0][0], 3 * X + 3) and torch.allclose(summed[1], weight * 6)
        assert torch.equal(cast[0][0], X + 1)
        assert torch.allclose(cast[1], weight * 6 if me == 1 else torch.zeros(6, 2).double())
        assert all(torch.equal(t, X + k) for k, t in enumerate(gathered[0]))
        assert torch.allclose(gathered[1], weight * 6 * (me + 1))
        assert all(torch.equal(t, (X + k) * (me + 1)) for k, t in enumerate(exchanged[0]))
        wanted = sum(
            (k + 1) * (me + 1) * (k + 1) for k in range(3)
        )  # rank k weighs what came from here, and k + 1 was its factor
        assert torch.allclose(exchanged[1], weight * wanted)


# ---- averages
def test_averages_of_parameters():
    def program(group):
        parameters = [torch.nn.Parameter(torch.full((2, k + 1), float(group.me + k))) for k in range(3)]
        parameters.append(torch.nn.Parameter(torch.full((3,), 3.0 * group.me).double()))
        for parameter in parameters[1:]:
            parameter.grad = torch.zeros_like(parameter)
        averager = averagers.PeriodicModelAverager(3, 1, group)
        seen = []
        for _ in range(5):
            averager.average_parameters(parameters)
            seen.append([p.detach().flatten()[-1].item() for p in parameters])
            with torch.no_grad():
                parameters[1] += group.me
        assert averager.step == 5
        averaging.average_parameters(iter(parameters), group)
        return seen, [p.detach().flatten()[0].item() for p in parameters]

    for me, (seen, last) in enumerate(played(program, RANKS)):
        wanted = [me + 1, 3, 3 + me, 3 + 2 * me, 6]  # averaged in the second and in the fifth step
        others = [[me, 2 + me, 3 * me], *[[me, 3, 3]] * 4]
        assert [row[1] for row in seen] == wanted and [[row[0], *row[2:]] for row in seen] == others
        assert last == [1, 7, 3, 3]
    for options, text in (
        ({"period": 0}, "must be a positive"),
        ({"period": 1, "warmup_steps": -1}, "non-negative"),
    ):
        with pytest.raises(ValueError, match=text):
            averagers.PeriodicModelAverager(**options)
