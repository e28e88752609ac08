"""How often a checkpointed region is recomputed, and how long its tensors are kept."""

import gc
import weakref

import pytest

import msadapter as torch
from msadapter.utils.checkpoint import checkpoint


@pytest.fixture
def counted():
    """A region that counts its runs and keeps weak references to what it computes."""
    runs, made = [], []

    def region(x, y):
        runs.append(1)
        a = x.sin()
        b = a * y
        c = torch.nn.functional.softmax(b.exp(), -1)
        made.append([weakref.ref(t) for t in (a, b)])
        return c.cumsum(-1) * a

    region.runs, region.made = runs, made
    return region


def test_a_region_is_recomputed_once_for_each_pass(counted):
    x, y = (torch.randn(3, 4, requires_grad=True) for _ in range(2))
    out = checkpoint(counted, x, y, use_reentrant=False)
    assert len(counted.runs) == 1
    for passes in (2, 3):
        out.sum().backward(retain_graph=True)
        assert len(counted.runs) == passes
    torch.autograd.grad(out.sum(), (x, y))
    assert len(counted.runs) == 4
    expected = torch.autograd.grad(counted(x, y).sum(), (x, y))
    assert torch.equal(x.grad / 2, expected[0]) and torch.equal(y.grad / 2, expected[1])


def test_nothing_is_kept_after_the_pass(counted):
    x, y = (torch.randn(3, 4, requires_grad=True) for _ in range(2))
    out = checkpoint(counted, x, y, use_reentrant=False).sum()
    gc.collect()
    assert all(reference() is None for reference in counted.made[0])
    out.backward()
    gc.collect()
    assert all(reference() is None for references in counted.made for reference in references)


def test_saved_tensors_may_be_read_twice():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, x.exp())
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            x, e = ctx.saved_tensors
            again = ctx.saved_tensors
            return g * (x + e) * (again[0] == x)

    x = torch.randn(3, requires_grad=True)
    checkpoint(lambda v: Twice.apply(v * 2), x, use_reentrant=False).sum().backward()
    assert torch.allclose(x.grad, 2 * (2 * x + (2 * x).exp()))
