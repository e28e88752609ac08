"""Gradients that do not arrive: what nodes, hooks and checks make of them, and what hooks of nodes may return."""

from __future__ import annotations

import warnings
from importlib import import_module

from tests.golden.answers import refusal


def _leaf(torch, *values, dtype=None):
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=dtype, requires_grad=True)


def _undefined(torch, *tensors):
    return torch._C._functions.UndefinedGrad()(*tensors)


def functions_that_get_no_gradient_at_all(torch):
    """Their backward runs all the same, with zeros, or with None where the Function wants that."""

    def function(materialize):
        class Made(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(materialize)
                return x * 2

            @staticmethod
            def backward(ctx, g):
                seen.append(g)
                return torch.ones(3)

        return Made.apply

    seen, found = [], []
    for materialize in (True, False):
        x = _leaf(torch)
        y = torch._C._functions.UndefinedGrad()(function(materialize)(x))
        found.append(torch.autograd.grad(y.sum(), x, allow_unused=True))
    return found, seen


def functions_of_which_some_outputs_get_a_gradient(torch):
    """Each missing gradient is zeros, or None, in its own place."""

    def function(materialize):
        class Made(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.set_materialize_grads(materialize)
                return x * 2, torch.cat([x, y]), y.double()

            @staticmethod
            def backward(ctx, *grads):
                seen.append(grads)
                return None, grads[0]

        return Made.apply

    seen, found = [], []
    for materialize in (True, False):
        for chosen in (0, 1, 2):
            x, y = _leaf(torch), _leaf(torch)
            outputs = function(materialize)(x * 1, y * 1)
            found.append(torch.autograd.grad(outputs[chosen].sum(), (x, y), allow_unused=True))
        outputs = function(materialize)(x * 1, y * 1)
        hidden = _undefined(torch, outputs[0]) + _undefined(torch, outputs[2])
        found.append(torch.autograd.grad(hidden.sum(), (x, y), allow_unused=True))
    return found, seen


def hooks_where_no_gradient_arrives(torch):
    """Hooks of tensors, nodes and leaves are called with None, in their usual order."""
    seen, x = [], _leaf(torch)
    m = x * 2
    m.register_hook(lambda g: seen.append(("tensor", g)))
    m.grad_fn.register_prehook(lambda grads: seen.append(("before the node", grads)))
    m.grad_fn.register_hook(lambda out, grads: seen.append(("after the node", out, grads)))
    x.register_hook(lambda g: seen.append(("leaf", g)))
    x.register_post_accumulate_grad_hook(lambda leaf: seen.append(("accumulated", leaf.grad)))
    m.retain_grad()
    _undefined(torch, m).sum().backward()
    return seen, x.grad, m.grad


def what_hooks_before_a_node_may_return(torch):
    """None, or a tuple with a tensor or None for each gradient; a tensor only where there was a gradient."""
    found = []
    for answer in (
        lambda grads: None,
        lambda grads: (grads[0] * 2,),
        lambda grads: (None,),
        lambda grads: (),
        lambda grads: (grads[0], grads[0]),
        lambda grads: [grads[0]],
        lambda grads: grads[0],
        lambda grads: "text",
        lambda grads: ("text",),
        lambda grads: (torch.ones(2),),
        lambda grads: (torch.ones(3, dtype=torch.float64),),
        lambda grads: (torch.ones(3),),
    ):
        for hidden in (False, True):
            x = _leaf(torch)
            m = x * 2
            m.grad_fn.register_prehook(answer)
            y = _undefined(torch, m) if hidden else m
            found.append([refusal(y.sum().backward), x.grad])
    return found


def what_hooks_after_a_node_may_return(torch):
    found = []
    for answer in (
        lambda out, grads: None,
        lambda out, grads: (out[0] * 5, None),
        lambda out, grads: (None, None),
        lambda out, grads: (out[0],),
        lambda out, grads: (out[0], out[0]),
        lambda out, grads: [out[0], None],
        lambda out, grads: "text",
        lambda out, grads: (7, None),
        lambda out, grads: (torch.ones(2), None),
        lambda out, grads: (torch.ones(3, dtype=torch.float64), None),
        lambda out, grads: (torch.ones(3), None),
    ):
        for hidden in (False, True):
            x = _leaf(torch)
            m = x * 2
            m.grad_fn.register_hook(answer)
            y = _undefined(torch, m) if hidden else m
            found.append([refusal(y.sum().backward), x.grad])
    return found


def checks_of_what_functions_make_of_missing_gradients(torch):
    """gradcheck hides the gradients of all outputs together, then of each alone."""

    def function(backward, materialize):
        class Made(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.set_materialize_grads(materialize)
                return x * 2, y * 3

            @staticmethod
            def backward(ctx, g, h):
                return backward(g, h)

        return Made.apply

    def scaled(g, factor):
        return None if g is None else g * factor

    def other_if_missing(g, h):
        return scaled(g, 2), torch.ones(2, dtype=torch.float64) if h is None else h * 3

    def other_if_both_are_missing(g, h):
        both = g is None and h is None
        return torch.ones(2, dtype=torch.float64) if both else scaled(g, 2), scaled(h, 3)

    def other_if_one_of_them_is_missing(g, h):
        one = (g is None) != (h is None)
        return torch.ones(2, dtype=torch.float64) if one else scaled(g, 2), scaled(h, 3)

    def refuses_a_missing_one(g, h):
        if g is None:
            raise RuntimeError("a gradient is missing")
        return g * 2, scaled(h, 3)

    def trips_over_a_missing_one(g, h):
        return scaled(g, 2), h * 3

    found = []
    for backward in (
        lambda g, h: (scaled(g, 2), scaled(h, 3)),
        lambda g, h: (torch.zeros(2, dtype=torch.float64) if g is None else g * 2, scaled(h, 3)),
        other_if_missing,
        other_if_both_are_missing,
        other_if_one_of_them_is_missing,
        refuses_a_missing_one,
        trips_over_a_missing_one,
    ):
        for materialize in (True, False):
            told = []
            for options in ({}, {"check_undefined_grad": False}):
                x, y = (_leaf(torch, 0.5, -1.5, dtype=torch.float64) for _ in range(2))
                made = function(backward, materialize)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    told.append(refusal(torch.autograd.gradcheck, made, (x, y), **options)[0])
                    told.append(
                        refusal(torch.autograd.gradcheck, made, (x, y), raise_exception=False, **options)[0]
                    )
            found.append(told)
    return found


def batched_gradients_that_do_not_fit(torch):
    """With is_grads_batched, every gradient has one row more than its output, and all have as many."""
    x = _leaf(torch)
    a, b, s = x * 2, x * 3, x.sum()
    found = []
    for outputs, grads in (
        ((a, b), (torch.ones(2, 3), torch.ones(4, 3))),
        ((a, b), (torch.ones(2, 3), None)),
        ((a, b), (None, None)),
        ((a, b), None),
        ((a, s), (torch.ones(2, 3), torch.ones(2))),
        ((a, b), (torch.ones(0, 3), torch.ones(0, 3))),
        ((a, b), (torch.ones(1, 3), torch.ones(1, 3))),
        (a, torch.ones(3)),
        (a, torch.tensor(3.0)),
        (a, torch.ones(2, 3, 1)),
        (a, torch.ones(2, 2)),
        (s, torch.ones(2, 1)),
        (a, torch.ones(2, 3, dtype=torch.complex64)),
    ):
        call = lambda o=outputs, g=grads: torch.autograd.grad(  # noqa: E731
            o, x, g, is_grads_batched=True, retain_graph=True
        )
        error = refusal(call)
        found.append([error, call() if error[0] == "nothing raised" else None])
    return found


def dual_tensors_of_every_dtype(torch):
    fw = torch.autograd.forward_ad
    found = []
    with fw.dual_level():
        for kind in ("float16", "bfloat16", "float32", "float64", "complex64", "complex128", "int32", "bool"):
            x = torch.tensor([1, 2]).to(getattr(torch, kind))
            error = refusal(fw.make_dual, x, x)
            found.append([kind, error])
            if error[0] == "nothing raised":
                found.append(fw.unpack_dual(fw.make_dual(x, x) * x).tangent.detach())
    return found


def outputs_that_forward_records_itself(torch):
    """What forward computes under enable_grad is handed back without that history, and so is it saved."""

    class Recorded(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, also_input):
            with torch.enable_grad():
                y, z = x.exp(), x * 3
            ctx.save_for_backward(*([x] if also_input else []), y, z, None)
            return y, z

        @staticmethod
        def backward(ctx, g, h):
            *given, y, z, nothing = ctx.saved_tensors
            seen.append([len(given), type(y.grad_fn).__name__, type(z.grad_fn).__name__, nothing])
            return g * y + h * z, None

    seen, found = [], []
    for also_input in (False, True):
        x = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
        outputs = Recorded.apply(x, also_input)
        found.append([[type(o.grad_fn).__name__, o.requires_grad, o.is_leaf] for o in outputs])
        (g,) = torch.autograd.grad((outputs[0] * outputs[1]).sum(), x, create_graph=True)
        found.append([g.detach(), torch.autograd.grad(g.sum(), x)])
    return found, seen


def once_differentiable_with_missing_gradients(torch):
    once = import_module(torch.__name__ + ".autograd.function").once_differentiable
    found = []

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        @once
        def backward(ctx, g, h):
            found.append([g is None, h is None])
            return g * 2 if h is None else h * 3

    for chosen in (0, 1):
        for again in (False, True):
            x = _leaf(torch)
            (g,) = torch.autograd.grad(Once.apply(x)[chosen].sum(), x, create_graph=again)
            found.append([g.detach(), g.requires_grad])
            y = Once.apply(x)[chosen]
            (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=again)
            found.append([g.requires_grad, refusal(g.sum().backward) if again else None])
    return found


def how_often_checks_of_gradients_call_the_function(torch):
    """Twice for every element of the inputs, or in fast mode for every input; and for the other checks."""
    found = []
    for size in (1, 2, 5):
        for count in (1, 2):
            for options in (
                {},
                {"fast_mode": True},
                {"check_undefined_grad": False},
                {"check_grad_dtypes": True},
            ):
                calls = []
                inputs = [torch.ones(size, dtype=torch.float64, requires_grad=True) for _ in range(count)]
                torch.autograd.gradcheck(lambda *xs, c=calls: c.append(0) or sum(xs) * 2, inputs, **options)
                found.append([size, count, len(calls)])
    return found


def vectors_of_products_that_do_not_fit(torch):
    """The error says which entry, if the function has several inputs or outputs."""
    A, found = torch.autograd.functional, []
    x = torch.tensor([1.0, 2.0])
    for count in (1, 2, 3):
        inputs = (x,) * count
        several = lambda *v: tuple(one * 2 for one in v) if len(v) > 1 else v[0] * 2  # noqa: E731
        single = lambda *v: sum((one**2).sum() for one in v)  # noqa: E731
        for sizes in ((2,) * count, (3,) * count, (2,) * (count - 1) + (3,), (2,) * (count + 1), (), None):
            vector = None if sizes is None else tuple(torch.ones(n) for n in sizes)
            vector = vector[0] if vector and count == 1 and len(vector) == 1 else vector
            given = inputs if count > 1 else x
            for call in (A.vjp, A.jvp):
                found.append(refusal(call, several, given, vector))
            for call in (A.vhp, A.hvp):
                found.append(refusal(call, single, given, vector))
    return found
