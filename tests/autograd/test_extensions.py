"""What other parts of the project hook into a backward pass, and the older interface of the profiler."""

from __future__ import annotations

import json

import pytest

import msadapter as torch
from msadapter._host import extensions


class Spread(torch.Tensor):
    """A tensor whose backward runs on another one."""


@pytest.fixture
def calls(monkeypatch):
    """Lets passes over Spread run on their `local` tensors, and doubles their results. Returns what it was given."""
    seen = []

    def local(x):
        return x.local if isinstance(x, Spread) else x

    def spread(tensors, grads, inputs):
        seen.append([isinstance(x, Spread) for x in (*tensors, *inputs)])
        results = lambda found: tuple(g * 2 for g in found)  # noqa: E731
        return [local(x) for x in tensors], list(grads), [local(x) for x in inputs], results

    monkeypatch.setattr(extensions.spread_backward, "_value", (Spread, spread))
    monkeypatch.setattr(extensions.spread_backward, "_source", None)
    return seen


def of(local):
    made = local.detach().as_subclass(Spread).requires_grad_()
    made.local = local
    return made


def test_a_pass_over_spread_tensors_runs_on_their_parts(calls):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum()
    one = torch.ones(())
    assert torch.autograd.grad(of(y), of(x), one, retain_graph=True)[0].tolist() == [4, 8]
    assert torch.autograd.grad(of(y), x, one, retain_graph=True)[0].tolist() == [4, 8]
    assert torch.autograd.grad(y, of(x), one, retain_graph=True)[0].tolist() == [4, 8]
    assert calls == [[True, True], [True, False], [False, True]]
    assert torch.autograd.grad(y, x, one, retain_graph=True)[0].tolist() == [2, 4]
    assert len(calls) == 3
    torch.autograd.backward(of(y), one)  # without inputs there are no results
    assert x.grad.tolist() == [2, 4] and calls[3:] == [[True]]


def test_every_pass_is_watched_from_its_roots(monkeypatch):
    seen = []
    monkeypatch.setattr(extensions.before_backward, "_value", seen.append)
    x = torch.ones(2, requires_grad=True)
    first, second = (x * 2).sum(), (x * 3).sum()
    torch.autograd.grad((first, second), x, retain_graph=True)
    first.backward()
    assert [[root is r for root in (first, second) for r in roots] for roots in seen] == [
        [True, False, False, True],
        [True, False],
    ]


def test_the_older_profiler_shows_what_the_newer_one_records(tmp_path):
    profiler = torch.autograd.profiler
    assert profiler.kineto_available() is True
    assert torch.autograd.kineto_available() is True
    assert torch.autograd._profiler_enabled() is False
    with profiler.profile(record_shapes=True) as found:
        (torch.ones(3, 2) @ torch.ones(2, 3)).sum()
    names = [event.key for event in found.key_averages()]
    assert "aten::matmul" in names or "aten::mm" in names
    assert found.self_cpu_time_total == found.function_events.self_cpu_time_total > 0
    assert found.total_average().count == found.function_events.total_average().count > 1
    assert found.table(sort_by="cpu_time", row_limit=1) == found.function_events.table(
        sort_by="cpu_time", row_limit=1
    )
    shapes = [event.input_shapes for event in found.key_averages(group_by_input_shape=True)]
    assert any([3, 2] in shape for shape in shapes if shape)
    found.export_chrome_trace(str(tmp_path / "trace.json"))
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    with pytest.raises(RuntimeError, match="not reentrant"):
        found.__enter__()


def test_the_older_profiler_can_be_switched_off():
    profiler = torch.autograd.profiler
    with profiler.profile(enabled=False) as found:
        torch.ones(2).sum()
    with pytest.raises(RuntimeError, match="didn't finish"):
        found.table()
    for mark in (profiler.emit_nvtx(), profiler.emit_itt(record_shapes=True)):
        with mark:
            assert torch.ones(2).sum() == 2
    with pytest.raises(NotImplementedError, match="coverage"):
        profiler.load_nvprof("x")


def test_what_functions_refuse_is_refused_for_any_argument(monkeypatch):
    """A Function takes ordinary tensors, also after a class that Functions refuse has been named."""

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, scale):
            return (x + y) * scale

        @staticmethod
        def backward(ctx, g):
            return g, g, None

    x = torch.ones(2, requires_grad=True)
    odd = x.detach().as_subclass(Spread)
    assert Twice.apply(x, odd, 2.0).tolist() == [4, 4]
    monkeypatch.setattr(extensions.refused_by_function, "_value", Spread)
    assert Twice.apply(x, x, 2.0).tolist() == [4, 4]
    for arguments in ((odd, x), (x, odd), (odd, odd)):
        with pytest.raises(NotImplementedError, match="Twice on a DTensor"):
            Twice.apply(*arguments, 2.0)
