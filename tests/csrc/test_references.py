"""The C++ core keeps and releases Python objects and memory: counts of references, and of the process's memory."""

from __future__ import annotations

import gc
import sys
import weakref

import pytest

import msadapter as torch

STEPS = {
    "arguments": lambda x, y: torch.add(x, y, alpha=2),
    "keywords": lambda x, y: torch.sum(input=x, dim=[0, 1], keepdim=True),
    "lists": lambda x, y: torch.cat([x, y], 1).split([2, 6], 1),
    "views": lambda x, y: x.t()[1:].reshape(-1).view(9),
    "in place": lambda x, y: x.clone().add_(y).mul_(2)[0].zero_(),
    "out": lambda x, y: torch.mul(x, y, out=torch.empty(0)),
    "numbers": lambda x, y: (x.sum().item(), x.tolist(), float(y[0, 0])),
    "indexing": lambda x, y: x[[0, 2]][..., y[0] > 0],
    "backward": lambda x, y: torch.autograd.grad((x.requires_grad_() * y).exp().sum(), x),
    "graph": lambda x, y: (x.clone().requires_grad_() @ y.t()).relu().sum().backward(),
    "hooks": lambda x, y: (x.clone().requires_grad_() * 2).register_hook(lambda g: g),
    "unknown keyword": lambda x, y: pytest.raises(TypeError, torch.add, x, y, beta=1),
    "wrong shape": lambda x, y: pytest.raises(RuntimeError, torch.add, x, torch.ones(7)),
    "wrong kind": lambda x, y: pytest.raises(TypeError, torch.add, x, "text"),
    "wrong index": lambda x, y: pytest.raises(IndexError, lambda: x[9]),
    "wrong dtype": lambda x, y: pytest.raises(RuntimeError, torch.bitwise_and, x, y),
}


@pytest.fixture(scope="module", autouse=True)
def only_new_objects():
    """Leave what other tests have made out of every collection and count here. It stays until the process ends."""
    gc.collect()
    gc.freeze()


@pytest.mark.parametrize("name", STEPS)
def test_no_reference_is_kept_or_lost(name):
    """After a call, whether it succeeds or fails, the arguments have as many references as before, and no tensor is left."""
    step = STEPS[name]
    x, y = torch.linspace(-1, 1, 12).reshape(3, 4), torch.linspace(0, 2, 12).reshape(3, 4)
    shared = [None, torch.float32, torch.strided]

    def counts() -> list[int]:
        return [sys.getrefcount(v) for v in (x, y, *shared[1:])]

    for _ in range(3):  # caches fill
        step(x, y)
    alive, before = _tensors(), counts()
    for _ in range(50):
        step(x, y)
    assert _tensors() == alive
    assert counts() == before


def _tensors() -> int:
    """The number of existing tensors, after reference cycles have been collected."""
    gc.collect()
    return sum(1 for v in gc.get_objects() if issubclass(type(v), torch.Tensor))  # a proxy may be dead


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.mark.parametrize("name", ["arguments", "views", "lists", "graph", "wrong shape"])
def test_memory_is_given_back(name):
    """Two hundred calls with 4 MB each would be noticed if each kept its result, its graph or its operands."""
    step = STEPS[name]

    def run(count: int) -> None:
        for _ in range(count):
            if name == "lists":
                torch.cat([torch.ones(512, 1024), torch.ones(512, 1024)], 1).split([24, 2024], 1)
            elif name == "views":
                torch.ones(1024, 1024).t()[1:].reshape(-1)
            else:
                a = torch.ones(1024, 1024)
                step(a, a[:3] if name == "graph" else torch.ones(1024, 1))

    run(10)
    before = _resident()
    run(200)
    assert _resident() - before < 200 << 20


def test_a_graph_dies_with_its_result():
    class Kept:
        pass

    kept = Kept()
    gone = weakref.ref(kept)
    x = torch.ones(3, requires_grad=True)
    y = (x * 2).exp()
    y.register_hook(lambda g, kept=kept: g)
    del kept
    gc.collect()
    assert gone() is not None
    del y
    gc.collect()
    assert gone() is None


def test_a_view_keeps_the_memory_and_not_the_object():
    base = torch.arange(6.0)
    part = base[2:4]
    gone = weakref.ref(base)
    pointer = part.data_ptr()
    with torch.no_grad():
        other = base.detach()[1:3]
    del base
    gc.collect()
    assert part.tolist() == [2.0, 3.0] and part.data_ptr() == pointer and other.tolist() == [1.0, 2.0]
    assert gone() is None or gone() is part._base  # the base is alive only if the view has it as its base
