"""Tensors that a Function saves: leaves stay the same objects, and hooks that recompute can read them."""

from __future__ import annotations

import gc
import weakref

import pytest

import msadapter as torch


class Scaled(torch.autograd.Function):
    contexts: list = []

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x.detach(), weight, None)
        Scaled.contexts.append(ctx)
        return x * weight

    @staticmethod
    def backward(ctx, g):
        x, weight, nothing = ctx.saved_tensors
        weight.seen = nothing is None and weight.marked
        return g * weight, g * x


def test_leaves_are_the_programs_own_objects():
    weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
    weight.marked = True
    Scaled.apply(torch.ones(2, requires_grad=True) * 1, weight).sum().backward()
    assert weight.seen


def test_saved_tensors_can_be_read_by_a_hook_outside_of_backward():
    """Checkpointing without outputs works this way: a hook on a later gradient runs the function again."""
    weight = torch.nn.Parameter(torch.tensor([2.0, 3.0]))
    weight.marked = True
    y = Scaled.apply(torch.ones(2, requires_grad=True) * 5, weight)
    ctx = Scaled.contexts[-1]
    assert ctx.saved_tensors[0].tolist() == [5, 5]
    found = []
    z = y * 2
    z.register_hook(lambda g: found.append(ctx.saved_tensors[0].tolist()))
    z.sum().backward()
    assert found == [[5, 5]]
    with pytest.raises(RuntimeError, match="a second time"):
        ctx.saved_tensors  # noqa: B018
    del y, z
    with pytest.raises(RuntimeError, match="needs an output that lives"):
        ctx.saved_tensors  # noqa: B018


def test_a_changed_leaf_is_still_noticed():
    weight = torch.tensor([2.0, 3.0], requires_grad=True)
    weight.marked = True
    y = Scaled.apply(torch.ones(2, requires_grad=True) * 1, weight)
    with torch.no_grad():
        weight.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


def test_a_hook_sees_inputs_with_their_history():
    """Inputs of operators and of Functions reach a hook with their history, as in PyTorch 2.13.

    MindSpeed moves only tensors with a graph node to the CPU.
    """
    seen = []

    def pack(tensor):
        seen.append((tensor.grad_fn is not None, tensor.requires_grad))
        return tensor

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    b, c = x * 2, x * 3
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        z = b * Product.apply(b, c)
    assert seen == [(True, True)] * 4
    z.sum().backward()
    assert x.grad.tolist() == [36.0, 144.0]


@pytest.mark.parametrize(
    ("function", "kept"),
    [
        (lambda x: torch.nn.functional.dropout(x, 0.5), [("torch.bool", (4, 6))]),
        (lambda x: x.sort(1)[0], [("torch.int64", (4, 6))]),
        (lambda x: x.max(1)[0], [("torch.int64", (4,))]),
        (lambda x: x.topk(2, 1)[0], [("torch.int64", (4, 2))]),
    ],
)
def test_only_the_results_that_the_backward_reads_are_kept(function, kept):
    """The values of a dropout, for example, would otherwise live as long as the graph."""
    x = torch.arange(24.0).reshape(4, 6).requires_grad_()
    found = []

    def pack(tensor):
        found.append((str(tensor.dtype), tuple(tensor.shape)))
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        y = function(x)
    assert found == kept
    assert hasattr(y.grad_fn, "_saved_result1") and not hasattr(y.grad_fn, "_saved_result0")
    y.sum().backward()
    assert x.grad.shape == x.shape


def test_what_a_function_saves_is_freed_with_the_graph():
    """The context keeps no tensor itself: those that are saved go with the graph's memory, and with retain_graph they stay."""
    made, contexts = [], []

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            square = x * x
            made.append(weakref.ref(square))
            contexts.append(ctx)
            ctx.save_for_backward(square)
            return square * x

        @staticmethod
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0]

    x = torch.tensor([2.0], requires_grad=True)
    out = Cube.apply(x)
    context = out.grad_fn
    assert context.saved_tensors[0].item() == 4.0
    out.sum().backward(retain_graph=True)
    assert context.saved_tensors[0].item() == 4.0
    out.sum().backward()
    gc.collect()
    assert made[0]() is None and x.grad.item() == 24.0
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        _ = context.saved_tensors
