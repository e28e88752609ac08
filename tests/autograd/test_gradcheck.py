"""gradcheck of functions that draw random numbers, and of functions of several outputs."""

import pytest

import msadapter as torch


def test_a_function_that_restores_the_generator_is_the_same_in_every_call():
    def noisy(x):
        state = torch.get_rng_state()
        try:
            return torch.nn.functional.rrelu(x, 0.1, 0.9, training=True)
        finally:
            torch.set_rng_state(state)

    torch.manual_seed(0)
    x = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    before = torch.get_rng_state()
    for fast in (True, False):
        assert torch.autograd.gradcheck(noisy, (x,), fast_mode=fast, atol=1e-4)
    assert torch.equal(before, torch.get_rng_state())


class _LacksAnUndefinedGradient(torch.autograd.Function):
    """Two outputs. The backward raises if the gradient of output `missing` (2: of both) is undefined and the rest is zero."""

    @staticmethod
    def forward(ctx, x, missing):
        ctx.set_materialize_grads(False)
        ctx.missing = missing
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, *grads):
        undefined = [g is None for g in grads]
        here = [(g, factor) for g, factor in zip(grads, (2, 3), strict=True) if g is not None]
        refused = [ctx.missing in (k, 2) for k in range(2)]
        if undefined == refused and any(undefined) and not any(g.any() for g, _ in here):
            raise RuntimeError("this backward cannot handle it")
        return sum(g * factor for g, factor in here) if here else None, None


@pytest.mark.parametrize("missing", [0, 1, 2])
@pytest.mark.parametrize("fast", [False, True])
def test_each_output_is_tried_with_an_undefined_gradient(missing: int, fast: bool) -> None:
    """PyTorch raises an error with the same sentence for this function."""
    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="Expected backward function to handle undefined output grads"):
        torch.autograd.gradcheck(lambda v: _LacksAnUndefinedGradient.apply(v, missing), (x,), fast_mode=fast)


def test_functions_of_several_outputs_that_handle_undefined_gradients_pass() -> None:
    x = torch.rand(3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: _LacksAnUndefinedGradient.apply(v, None), (x,))


class _WrongInOnePlace(torch.autograd.Function):
    """The identity, whose gradient lacks the real or the imaginary part of one element."""

    @staticmethod
    def forward(ctx, x, place, part):
        ctx.place, ctx.part = place, part
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        found = torch.view_as_real(grad.clone())
        if ctx.place is not None:
            found[ctx.place, ctx.part] = 0
        return torch.view_as_complex(found), None, None


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("fast", [False, True])
def test_each_part_of_each_complex_element_is_compared(place: int, part: int, fast: bool) -> None:
    x = torch.randn(3, dtype=torch.complex128, requires_grad=True)
    assert torch.autograd.gradcheck(lambda v: _WrongInOnePlace.apply(v, None, 0), (x,), fast_mode=fast)
    with pytest.raises(
        RuntimeError, match=f"considering the {('real', 'imaginary')[part]} part .* only, Jacobian mismatch"
    ):
        torch.autograd.gradcheck(lambda v: _WrongInOnePlace.apply(v, place, part), (x,), fast_mode=fast)


class _Sum(torch.autograd.Function):
    """x + 2 y and x - y. The second tangent is wrong if that of input `wrong` is missing."""

    @staticmethod
    def forward(ctx, x, y, wrong):
        ctx.set_materialize_grads(False)
        ctx.wrong = wrong
        return x + 2 * y, x - y

    @staticmethod
    def backward(ctx, g, h):
        zero = torch.zeros(2, dtype=torch.float64)
        g, h = zero if g is None else g, zero if h is None else h
        return g + h, 2 * g - h, None

    @staticmethod
    def jvp(ctx, t, u, _):
        off = 1.0 if (t, u)[ctx.wrong] is None else 0.0
        zero = torch.zeros(2, dtype=torch.float64)
        t, u = zero if t is None else t, zero if u is None else u
        return t + 2 * u, t - u + off


@pytest.mark.parametrize("wrong", [0, 1])
def test_the_input_whose_tangent_is_missing_is_named(wrong: int) -> None:
    x, y = (torch.rand(2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    text = rf"for output with index: 1 when input {wrong} has an undefined tangent"
    with pytest.raises(RuntimeError, match=text):
        torch.autograd.gradcheck(lambda a, b: _Sum.apply(a, b, wrong), (x, y), check_forward_ad=True)


def test_inputs_without_gradients_may_be_anywhere() -> None:
    """PyTorch ends in an IndexError in fast mode, if such an input is not the last."""
    x = torch.rand(2, dtype=torch.float64, requires_grad=True)
    y = torch.rand(3, dtype=torch.float64, requires_grad=True)

    def function(fixed, a, count, b, wrong):
        made = (a * fixed.sum() * count.sum()).clone()
        if wrong:
            made.register_hook(lambda g: g + 0.01)
        return made, count, b * 2

    inputs = torch.ones(2, dtype=torch.float64), x, torch.tensor([1, 2]), y
    for options in ({}, {"fast_mode": True}, {"check_forward_ad": True}, {"check_batched_grad": True}):
        assert torch.autograd.gradcheck(lambda *t: function(*t, wrong=False), inputs, **options)
        with pytest.raises(RuntimeError, match="mismatch for output 0 with respect to input 0"):
            torch.autograd.gradcheck(lambda *t: function(*t, wrong=True), inputs, **options)


def test_the_input_with_a_wrong_tangent_is_named_among_those_with_gradients() -> None:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            return a * 3

        @staticmethod
        def backward(ctx, g):
            return g * 3

        @staticmethod
        def jvp(ctx, t):
            return t * 3.01

    x, y = (torch.rand(2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    inputs = torch.ones(2, dtype=torch.float64), x, y, torch.zeros(0, dtype=torch.float64, requires_grad=True)
    for fast in (False, True):
        options = {"check_forward_ad": True, "fast_mode": fast}
        assert torch.autograd.gradcheck(lambda n, a, b, e: a * n + b * e.sum().exp(), inputs, **options)
        with pytest.raises(RuntimeError, match="forward mode mismatch for output 0 with respect to input 1"):
            torch.autograd.gradcheck(lambda n, a, b, e: a * n + Scaled.apply(b) + e.sum(), inputs, **options)


def test_batched_tangents_are_compared_with_those_alone() -> None:
    """A function that multiplies by another number in one of its calls: in some calls, only the batched tangents show it."""
    x = torch.rand(2, dtype=torch.float64, requires_grad=True)
    options = {
        "check_forward_ad": True, "check_backward_ad": False, "check_undefined_grad": False, "check_batched_forward_grad": True,
    }  # fmt: skip
    texts = []
    for odd in range(20):
        calls = []

        def function(v, calls=calls, odd=odd):
            calls.append(1)
            return v * (3 if len(calls) == odd else 2)

        try:
            assert torch.autograd.gradcheck(function, (x,), **options)
            texts.append("" if len(calls) < odd or odd == 0 else "unnoticed")
        except RuntimeError as error:
            texts.append(str(error))
    assert texts[0] == "" and "unnoticed" not in texts[2:]
    assert (
        sum("batched tangents of forward mode for input 0" in text for text in texts) == 3
    )  # two alone, one together


def test_batched_tangents_of_a_function_without_setup_context() -> None:
    """The vmap of gradient checks is no transform of torch.func, which would refuse such a Function."""

    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_forward(factor)
            return x * factor

        @staticmethod
        def jvp(ctx, tangent, _):
            return tangent * ctx.saved_tensors[0]

    x, factor = torch.rand(2, dtype=torch.float64, requires_grad=True), torch.rand(2, dtype=torch.float64)
    options = {"check_forward_ad": True, "check_backward_ad": False, "check_batched_forward_grad": True}
    assert torch.autograd.gradcheck(Scaled.apply, (x, factor), check_undefined_grad=False, **options)
    with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
        torch.func.vmap(lambda v: Scaled.apply(v, factor[0]))(x)
