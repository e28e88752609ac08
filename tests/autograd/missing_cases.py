"""Gradients that do not arrive: what nodes, hooks and checks make of them, and what hooks of nodes may return."""

from __future__ import annotations

import warnings

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
