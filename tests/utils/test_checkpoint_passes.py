"""How often a checkpointed region is recomputed, and how long its tensors are kept."""

import functools
import gc
import weakref

import pytest

import msadapter as torch
from msadapter.utils._python_dispatch import _get_current_dispatch_mode
from msadapter.utils.checkpoint import (
    CheckpointPolicy,
    _CachingTorchDispatchMode,
    checkpoint,
    create_selective_checkpoint_contexts,
)


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


def test_a_saved_tensor_is_given_once_in_a_pass():
    class Reads(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            with pytest.raises(RuntimeError, match="that was already unpacked once"):
                _ = ctx.saved_tensors
            return g * y, g * x

    x, y = (torch.randn(3, requires_grad=True) for _ in range(2))
    checkpoint(lambda a, b: Reads.apply(a * 2, b), x, y, use_reentrant=False).sum().backward()
    assert torch.equal(x.grad, y * 2) and torch.equal(y.grad, x * 2)


@pytest.mark.parametrize("create_graph", [False, True])
def test_operators_ask_once_for_what_they_have_saved(create_graph):
    """Gradients in C++ that decline a call, and formulas that read a value twice, get the same tensor."""
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    w = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)

    def region(a, b):
        return (
            torch.std(a * b, 1) + (a * 2j * b).abs().sum(1) + (a.exp() / b).sum(1) + (b.cumprod(1) * a).sum(1)
        ) ** 2

    expected = torch.autograd.grad(region(x, w).sum(), (x, w))
    out = checkpoint(region, x, w, use_reentrant=False).sum()
    found = torch.autograd.grad(out, (x, w), create_graph=create_graph)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_the_last_operator_is_not_computed_again():
    """A recomputation ends when the operands that the backward needs are there, before the result is computed."""
    x, wide = torch.ones(1, 1, requires_grad=True), torch.ones(1, 1 << 20)
    out = checkpoint(lambda a: a @ wide, x, use_reentrant=False)
    gradient = torch.ones_like(out)
    memory = torch._C.memory_stats
    torch._C.reset_peak()
    before = memory()["allocated"]
    out.backward(gradient)
    assert memory()["peak"] - before < out.nbytes / 2 and x.grad.item() == 1 << 20


def test_selective_checkpoints_keep_results_of_a_programs_own_operators():
    calls = []
    with torch.library._scoped_library("passes", "FRAGMENT"):

        @torch.library.custom_op("passes::sine", mutates_args=())
        def sine(x: torch.Tensor) -> tuple[torch.Tensor, int]:
            calls.append(1)
            return x.sin(), 2

        def keep(ctx, inputs, output):
            ctx.save_for_backward(inputs[0])

        def backward(ctx, g, _):
            return g * ctx.saved_tensors[0].cos()

        torch.library.register_autograd("passes::sine", backward, setup_context=keep)
        operator = torch.ops.passes.sine.default
        assert (
            isinstance(operator, type(torch.ops.aten.sin.default)) and str(operator) == "passes.sine.default"
        )
        x = torch.randn(3, requires_grad=True)

        def region(a):
            return (torch.ops.passes.sine(a)[0] * a.sin().exp()).sin()

        expected = torch.autograd.grad(region(x).sum(), x)[0]
        for kept, count in (([operator], 1), ([torch.ops.aten.sin.default], 2)):
            calls.clear()
            contexts = functools.partial(create_selective_checkpoint_contexts, kept)
            out = checkpoint(region, x, use_reentrant=False, context_fn=contexts)
            assert torch.equal(torch.autograd.grad(out.sum(), x)[0], expected) and len(calls) == count


def test_what_a_selective_checkpoint_keeps_goes_with_the_graph():
    references = []

    def region(x):
        out = x.cos().exp()
        mode = _get_current_dispatch_mode()
        if isinstance(mode, _CachingTorchDispatchMode):
            kept = mode.storage[torch.ops.aten.exp.default][0].val
            assert not kept.requires_grad
            references.append(weakref.ref(kept))
        return out.sin()

    contexts = functools.partial(
        create_selective_checkpoint_contexts, lambda *_, **__: CheckpointPolicy.MUST_SAVE
    )
    gc.disable()
    try:
        for use in (lambda out: None, lambda out: out.sum().backward(retain_graph=True)):
            out = checkpoint(
                region, torch.randn(3, requires_grad=True), use_reentrant=False, context_fn=contexts
            )
            assert references[-1]() is not None
            use(out)
            del out
            assert references[-1]() is None
    finally:
        gc.enable()


def test_the_check_of_the_second_run_can_be_left_out():
    runs = []

    def region(x):
        runs.append(1)
        return x.exp() if len(runs) % 2 else x[:1].exp()

    for check, expected in (("default", None), ("none", torch.tensor([1.0, 1.0]).exp())):
        x = torch.ones(2, requires_grad=True)
        out = checkpoint(region, x, use_reentrant=False, determinism_check=check).sum()
        if expected is None:
            with pytest.raises(RuntimeError, match="different metadata"):
                out.backward()
        else:
            out.backward()
            assert torch.equal(x.grad, expected)
    with pytest.raises(ValueError, match="should be one of .*, but got all"):
        checkpoint(region, x, use_reentrant=False, determinism_check="all")
