"""The table of tangents, and what a level of forward mode leaves behind."""

from __future__ import annotations

import gc

import pytest

import msadapter as torch
from msadapter import _C, overrides
from msadapter.autograd import _tangents
from msadapter.autograd import forward_ad as f


def test_a_tensor_has_one_leaf_until_it_is_written():
    """A dual tensor that requires no grad is replaced by a leaf in the graph. Each leaf is a source of tangents."""
    with f.dual_level():
        d = f.make_dual(torch.ones(3), torch.full((3,), 2.0))
        table = _tangents.levels[-1]
        first = table.hidden(d)
        assert table.hidden(d) is first and first.requires_grad and first.is_leaf and len(table.sources) == 1
        with _tangents.paused():
            d.mul_(5)
        second = table.hidden(d)
        assert second is not first and table.hidden(d) is second and second.tolist() == [5.0] * 3
        assert [leaf for leaf, _ in table.sources] == [first, second]
        assert all(tangent.tolist() == [2.0] * 3 for _, tangent in table.sources)


def test_tangents_live_as_long_as_their_tensors():
    with f.dual_level():
        d = f.make_dual(torch.ones(3), torch.ones(3))
        table = _tangents.levels[-1]
        before = len(table._rows)
        made = [d * 2, d.exp(), d[1:]]
        table.hidden(d)
        assert len(table._rows) == before + 3 and len(table._hidden) == 1
        del made
        gc.collect()
        assert len(table._rows) == before
        del d
        gc.collect()
        assert not table._rows and not table._hidden


def test_a_view_of_a_written_base_has_one_tangent():
    with f.dual_level():
        base = torch.zeros(3)
        part = base[1:]
        base.copy_(f.make_dual(torch.ones(3), torch.ones(3)))
        assert f.unpack_dual(part).tangent is f.unpack_dual(part).tangent
        kept = _tangents.levels[-1]
        number = id(base)
        del base
        gc.collect()
        assert number in kept._rows and f.unpack_dual(part).tangent.tolist() == [1.0, 1.0]


def test_operators_are_asked_inside_of_a_level_only():
    asked = []

    def count(function, args, kwargs):
        asked.append(function.__name__)
        return overrides.dispatch(function, args, kwargs)

    x = torch.ones(2)
    _C.set_torch_function_handler(count)
    try:
        for _ in range(2):
            x * 2
            assert not asked
            with f.dual_level():
                x * 2
                assert asked
            asked.clear()
        with pytest.raises(ZeroDivisionError), f.dual_level():
            x * (1 / 0)
        asked.clear()
        x * 2
        assert not asked
    finally:
        _C.set_torch_function_handler(overrides.dispatch)


def test_levels_and_switches_are_restored():
    assert f._is_fwd_grad_enabled() and f._current_level == -1
    with f._set_fwd_grad_enabled(False):
        assert not f._is_fwd_grad_enabled()
        with f._set_fwd_grad_enabled(True):
            assert f._is_fwd_grad_enabled()
        assert not f._is_fwd_grad_enabled()
    assert f._is_fwd_grad_enabled()
    with f.dual_level():
        level = _tangents.levels[-1]
        with _tangents.paused():
            with _tangents.paused():
                pass
            assert not _tangents.visible()
        assert _tangents.visible() == [level]
    with f._level(), f._level():  # those of derivatives, one inside of the other
        outer, inner = _tangents.levels
        assert _tangents.visible() == [inner, outer]
        with _tangents.paused():
            assert _tangents.visible() == [outer]
            with f._level():
                assert _tangents.visible() == [_tangents.levels[-1], outer]
    assert not _tangents.levels and not _tangents.state.hidden


def test_the_jvp_of_a_function_gets_tangents_of_the_derivative_around_it():
    """PyTorch 2.13 gives zeros here."""

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(a):
            return a**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx, t):
            return t * 3 * ctx.saved_tensors[0] ** 2

    def slope(a):
        return torch.func.jvp(Cube.apply, (a,), (torch.ones_like(a),))[1]

    x = torch.tensor([0.5, -2.0])
    assert torch.func.jvp(slope, (x,), (torch.ones(2),))[1].tolist() == (6 * x).tolist()


def test_a_jvp_must_return_a_tangent_for_a_view():
    class View(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[1:]

        @staticmethod
        def jvp(ctx, tangent):
            return None

    with f.dual_level(), pytest.raises(RuntimeError, match="but the jvp is not returning a view"):
        View.apply(f.make_dual(torch.ones(3), torch.ones(3)))


def test_parts_of_complex_tangents_inside_of_vmap():
    """The tangents of older real views are refused there. Those of new views are computed."""

    def older(v):
        with f.dual_level():
            numbers = torch.zeros(2, dtype=torch.complex64)
            parts = torch.view_as_real(numbers)
            numbers.copy_(f.make_dual(torch.ones(2, dtype=torch.complex64), v))
            return f.unpack_dual(parts).tangent

    def newer(v):
        with f.dual_level():
            return f.unpack_dual(
                torch.view_as_real(f.make_dual(torch.ones(2, dtype=torch.complex64), v))
            ).tangent

    vectors = torch.complex(torch.arange(6.0), -torch.arange(6.0)).reshape(3, 2)
    with pytest.raises(NotImplementedError, match="inside of vmap"):
        torch.func.vmap(older)(vectors)
    assert torch.equal(torch.func.vmap(newer)(vectors), torch.view_as_real(vectors))


def test_a_jvp_inside_of_a_functions_forward_and_backward() -> None:
    """A Function computes its forward without the tangents of its caller; a jvp in it has its own."""

    class Sine(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return -torch.func.jvp(torch.cos, (x,), (torch.ones_like(x),))[1]

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * torch.func.jvp(torch.sin, (x,), (torch.ones_like(x),))[1]

    x = torch.linspace(-2, 2, 5).requires_grad_()
    y = Sine.apply(x)
    torch.testing.assert_close(y, x.sin())
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], x.cos().detach())
