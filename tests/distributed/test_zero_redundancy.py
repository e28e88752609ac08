"""ZeroRedundancyOptimizer in a group of three ranks that threads play: who has what, steps and states."""

from __future__ import annotations

import itertools

import pytest

import msadapter as torch
from msadapter.distributed.algorithms.join import Join
from msadapter.distributed.optim import ZeroRedundancyOptimizer
from msadapter.distributed.optim import zero_redundancy_optimizer as zero
from msadapter.distributed.work import Work
from tests.distributed.played import Collectives, played

SIZES = (6, 5, 4, 3, 2)


class Later(Collectives):
    """Broadcasts that are waited for."""

    @staticmethod
    def broadcast(tensor, group=None, group_src=0, async_op=False):
        Collectives.broadcast(tensor, group=group, group_src=group_src)
        return Work([tensor])


class Objects:
    @staticmethod
    def gather_object(value, gathered, group, group_dst):
        given = group.line.exchange(group.me, value)
        assert (gathered is not None) == (group.me == group_dst)
        if gathered is not None:
            gathered[:] = given


@pytest.fixture(autouse=True)
def exchanged_by_threads(monkeypatch):
    monkeypatch.setattr(zero, "collectives", Later)
    monkeypatch.setattr(zero, "objects", Objects)
    monkeypatch.setattr(zero, "resolve", lambda group: group)
    monkeypatch.setattr(zero, "get_global_rank", lambda group, rank: group._ranks[rank])


def parameters(first=0):
    return [
        torch.nn.Parameter(torch.arange(float(n)).sin() + k) for k, n in enumerate(SIZES[first:], start=first)
    ]


def with_gradients(given, step):
    for k, p in enumerate(given):
        p.grad = (p.detach() * (k + 1) + step).cos()


@pytest.mark.parametrize("as_view", [False, True])
def test_steps_are_those_of_one_process(as_view):
    """With two groups of parameters, of which the second comes later, and a rate that changes."""

    def steps(optimizer, given):
        losses = []
        for step in range(4):
            if step == 2:
                optimizer.param_groups[0]["lr"] = 0.01
            with_gradients(given, step)
            losses.append(optimizer.step(lambda step=step: step if torch.is_grad_enabled() else None))
        return losses

    alone = parameters()
    plain = torch.optim.Adam(alone[:4], lr=0.1)
    plain.add_param_group({"params": alone[4:], "lr": 0.2})
    steps(plain, alone)

    def program(group):
        own = parameters()
        made = ZeroRedundancyOptimizer(
            own[:4], torch.optim.Adam, group, parameters_as_bucket_view=as_view, lr=0.1
        )
        made.add_param_group({"params": own[4:], "lr": 0.2})
        parts = [[p.numel() for p in part["params"]] for part in made._parts[group.me]]
        assert made.global_rank == group._ranks[group.me] and made.join_process_group is group
        assert steps(made, own) == [0, 1, 2, 3] and made.join_device == own[0].device
        with pytest.raises(RuntimeError, match=rf"consolidate_state_dict\(to={group.me}\)` on all ranks"):
            made.state_dict()
        made.consolidate_state_dict(1)
        state = made.state_dict() if group.me == 1 else None
        assert group.me == 1 or made._all_state_dicts == []
        return parts, [p.detach() for p in own], len(made.optim.state), state

    found = played(program, (4, 6, 9))
    assert [parts for parts, *_ in found] == [[[6], []], [[5], [2]], [[4, 3], []]]
    for _, values, states, _ in found:
        assert all(torch.equal(a, b) for a, b in zip(values, alone, strict=True)) and 1 <= states <= 2
    assert sum(states for *_, states, _ in found) == 5
    state, wanted = found[1][3], plain.state_dict()
    assert list(state["state"]) == list(range(5))
    assert [g["lr"] for g in state["param_groups"]] == [0.01, 0.2]
    assert [g["params"] for g in state["param_groups"]] == [g["params"] for g in wanted["param_groups"]]
    for number, values in wanted["state"].items():
        for key, value in values.items():
            assert torch.equal(state["state"][number][key], value), (number, key)

    before = [p.detach().clone() for p in alone]

    def loaded(group):
        own = [torch.nn.Parameter(value.clone()) for value in before]
        made = ZeroRedundancyOptimizer(
            [{"params": own[:4], "lr": 0.5}, {"params": own[4:]}], torch.optim.Adam, group, lr=0.7
        )
        made.load_state_dict(state)
        assert (
            [g["lr"] for g in made.param_groups] == [g["lr"] for g in made.optim.param_groups] == [0.01, 0.2]
        )
        with_gradients(own, 9)
        made.step()
        return [p.detach() for p in own]

    with_gradients(alone, 9)
    plain.step()
    for values in played(loaded, (4, 6, 9)):
        assert all(torch.equal(a, b) for a, b in zip(values, alone, strict=True))


def test_views_of_buckets():
    def program(group):
        own = parameters()
        before = [p.detach().clone() for p in own]
        made = ZeroRedundancyOptimizer(own, torch.optim.SGD, group, True, lr=0.1)
        for flat, rank in made._buckets:
            held = [p for part in made._parts[rank] for p in part["params"]]
            assert flat.numel() == sum(p.numel() for p in held)
            starts = itertools.accumulate((p.numel() for p in held), initial=0)
            assert all(p.data_ptr() == flat[s:].data_ptr() for p, s in zip(held, starts, strict=False))
        assert all(torch.equal(a, b) for a, b in zip(own, before, strict=True))
        return [rank for _, rank in made._buckets]

    assert played(program, (4, 6, 9)) == [[0, 1, 2]] * 3


def test_a_process_without_inputs_steps_too(monkeypatch):
    def program(group):
        own = parameters(3)
        made = ZeroRedundancyOptimizer(own, torch.optim.SGD, group, lr=1.0)
        with_gradients(own, 0)
        hook = made.join_hook()
        hook.main_hook()
        return [p.detach() for p in own], made

    alone = parameters(3)
    with_gradients(alone, 0)
    torch.optim.SGD(alone, lr=1.0).step()
    notified = []
    monkeypatch.setattr(Join, "notify_join_context", staticmethod(notified.append))
    found = played(program, (4, 6, 9))
    for values, _ in found:
        assert all(torch.equal(a, b) for a, b in zip(values, alone, strict=True))
    assert {id(n) for n in notified} == {id(made) for _, made in found}


def test_parameters_that_are_refused():
    for given, error, text in (
        (torch.ones(2), TypeError, "should be an iterable of Tensors, but got"),
        ([], ValueError, "empty parameter list"),
        ([3], TypeError, "an iterable containing <class 'int'>"),
    ):
        with pytest.raises(error, match=text):
            ZeroRedundancyOptimizer(given, torch.optim.SGD, lr=0.1)
    with pytest.raises(NotImplementedError, match="overlap_with_ddp"):
        ZeroRedundancyOptimizer(parameters(), torch.optim.SGD, overlap_with_ddp=True, lr=0.1)
