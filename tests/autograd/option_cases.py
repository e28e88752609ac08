"""Options of autograd away from their defaults, and its rarely taken ways."""

from __future__ import annotations

import re
import warnings
from collections import OrderedDict
from importlib import import_module

from tests.golden.answers import refusal


def _leaf(torch, *values, dtype=None):
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=dtype, requires_grad=True)


def _same(torch, returned, count=1):
    """A Function whose forward returns `returned(x)`, and its gradient unchanged."""

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return returned(x)

        @staticmethod
        def backward(ctx, *grads):
            return grads[0].reshape(6)

    return Same.apply


def gradients_of_another_dtype(torch):
    """Hooks see the gradient in the dtype of the result, and the gradient's own gradient has its dtype."""
    found = []
    for dtype in (torch.float32, torch.float16, torch.float64):
        for given in (torch.float32, torch.float64, torch.bfloat16, torch.int64):
            x, seen = _leaf(torch, 1.0, 2.0, dtype=dtype), []
            g = torch.tensor([1, 3]).to(given).requires_grad_(given.is_floating_point)
            y = x * x
            y.register_hook(lambda v, seen=seen: seen.append(str(v.dtype)))
            (first,) = torch.autograd.grad(y, x, g, create_graph=True)
            again = torch.autograd.grad(first.sum(), g)[0] if g.requires_grad else None
            (x * x).backward(g)
            found.append([seen, first.detach(), again, x.grad])
    return found


def checkpoints_in_nested_passes(torch):
    """A re-entrant checkpoint may run only if no pass around it is restricted to some inputs."""
    valid, seen = torch.autograd._is_checkpoint_valid, []

    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, restricted):
            ctx.restricted = restricted
            return x * 2

        @staticmethod
        def backward(ctx, g):
            seen.append(valid())
            y = torch.ones(2, requires_grad=True)
            with torch.enable_grad():
                z = y * 3
                z.register_hook(lambda _: seen.append(valid()))
                z.sum().backward(inputs=[y] if ctx.restricted else None)
            seen.append(valid())
            return g * 2, None

    for outer in (False, True):
        for inner in (False, True):
            x = _leaf(torch)
            y = Nested.apply(x, inner).sum()
            y.backward(inputs=[x]) if outer else y.backward()
            seen.append(valid())
            torch.autograd.grad(Nested.apply(x, inner).sum(), x)
            seen.append(valid())
    failing = _leaf(torch)
    failing.register_hook(lambda _: 1 / 0)
    seen.append(refusal(lambda: torch.autograd.grad((failing * 1).sum(), failing))[0])
    return seen, valid()


def roots_that_need_no_gradient(torch):
    x, plain = _leaf(torch), torch.ones(3)
    y = (x * 2).sum()
    backward, grad = torch.autograd.backward, torch.autograd.grad
    return [
        refusal(backward, plain),
        refusal(backward, [y, plain], [None, None]),
        refusal(backward, [plain, y], [torch.ones(3), None]),
        refusal(backward, [plain, y], [torch.ones(2), None]),
        refusal(grad, plain, x),
        refusal(grad, (y, plain), x, (None, None)),
        refusal(grad, (y, plain.sum()), x),
        x.grad,
    ]


def written_outputs_of_functions(torch):
    """What a Function returns unchanged, or as a view of its input, is a view that must not be written."""
    found = []
    for name in ("itself", "view", "new", "several", "nothing recorded", "not needed", "no_grad"):
        x = torch.arange(6.0, requires_grad=name not in ("not needed",))
        forms = {
            "view": lambda v: v.view(2, 3),
            "new": lambda v: (v + 1).view(3, 2),
            "several": lambda v: (v, v * 2),
        }
        apply = _same(torch, forms.get(name, lambda v: v))
        if name in ("nothing recorded", "no_grad"):
            with torch.no_grad():
                y = apply(x)
        else:
            y = apply(x)
        y = y[0] if isinstance(y, tuple) else y
        found.append([name, y is x, y.requires_grad, y.is_leaf, y._is_view(), y._base is x])
        other = _leaf(torch, 1.0)
        found.append([refusal(lambda y=y: y.add_(1)), refusal(lambda y=y, o=other: y.view(-1).mul_(o))])
        found.append([y.requires_grad, x.detach().clone()])
    return found


def counts_of_returned_gradients(torch):
    found = []
    for count in (1, 2):
        for result in (
            (1,),
            (1, None),
            (1, None, None),
            (1, None, None, 2),
            (1, None, 2, None),
            (None, None, None),
        ):

            class Custom(torch.autograd.Function):
                @staticmethod
                def forward(ctx, *tensors):
                    return tensors[0] * 1

                @staticmethod
                def backward(ctx, g, result=result):
                    return tuple(g * r if isinstance(r, int) else r for r in result)

            leaves = [_leaf(torch) for _ in range(count)]
            found.append(
                [refusal(lambda c=Custom, x=leaves: c.apply(*x).sum().backward()), [x.grad for x in leaves]]
            )
    return found


def outputs_that_are_no_tensors(torch):
    class Mixed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return "text", x * 2, None, x.long()

        @staticmethod
        def backward(ctx, a, b, c, d):
            seen.append([a, b, c, d])
            return b * 2

    x, seen = _leaf(torch), []
    text, y, nothing, whole = Mixed.apply(x)
    y.sum().backward()
    with torch.no_grad():
        unrecorded = Mixed.apply(x)
    return (
        text,
        y.requires_grad,
        nothing,
        whole,
        whole.requires_grad,
        seen,
        x.grad,
        [*unrecorded[:1], *unrecorded[1:]],
    )


def batched_gradients_with_options(torch):
    x, w = _leaf(torch), _leaf(torch, 2.0, 3.0, 4.0)
    y, z = x * x * w, x * 2
    rows = torch.arange(6.0).view(2, 3)
    grad = torch.autograd.grad
    both = {"retain_graph": True, "is_grads_batched": True}
    first = grad(y, (x, w), rows, create_graph=True, **both)
    return [
        grad((y, z), x, (rows, rows + 1), **both),
        refusal(grad, (y, z), x, (rows, None), **both),
        grad(z, (x, w), rows, allow_unused=True, **both),
        grad(z, (x, w), rows, materialize_grads=True, **both),
        refusal(grad, z, (x, w), rows, **both),
        [v.detach() for v in first],
        grad(first[0].sum(), (x, w)),
        refusal(grad, y, x, torch.ones(2, 4), **both),
        refusal(grad, y, x, rows, is_grads_batched=True),
        refusal(grad, y, x, rows, is_grads_batched=True),
    ]


def levels_of_forward_mode(torch):
    fw = torch.autograd.forward_ad
    x, v, found = (
        torch.tensor([1.0, 2.0]),
        torch.tensor([3.0, 5.0]),
        [fw._current_level, fw._is_fwd_grad_enabled()],
    )
    with fw.dual_level():
        found.append(fw._current_level)
        dual = fw.make_dual(x, v)
        with fw._set_fwd_grad_enabled(False):
            found.append(fw._is_fwd_grad_enabled())
            with fw._set_fwd_grad_enabled(True):
                found.append(fw._is_fwd_grad_enabled())
            found.append(fw._is_fwd_grad_enabled())
        found.append(fw.unpack_dual(dual * 2).tangent.detach())
    fw._set_fwd_grad_enabled(False)
    found.append(fw._is_fwd_grad_enabled())
    fw._set_fwd_grad_enabled(True)
    return [*found, fw._is_fwd_grad_enabled(), fw._current_level, refusal(lambda: fw.no_such)[0]]


def a_function_without_derivatives_under_forward_mode(torch):
    class Bare(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    fw = torch.autograd.forward_ad
    with fw.dual_level():
        dual = fw.make_dual(torch.ones(2), torch.ones(2))
        return refusal(Bare.apply, dual)[0], Bare.apply(torch.ones(2))


def errors_that_wait_for_the_backward(torch):
    functions = torch._C._functions
    x, w = _leaf(torch), _leaf(torch, 5.0)
    one = functions.DelayedError("it was too late", 1)(x)
    two = functions.DelayedError("for both", 2)(x, w)
    none = functions.UndefinedGrad()(x)
    return [
        one.detach(), [v.detach() for v in two], none.detach(), one.requires_grad,
        refusal(lambda: one.sum().backward()), refusal(lambda: (two[0].sum() + two[1].sum()).backward()),
        torch.autograd.grad((none * 2).sum(), x, allow_unused=True), x.grad,
    ]  # fmt: skip


def handles_with_further_dictionaries(torch):
    handle = import_module(torch.__name__ + ".utils.hooks").RemovableHandle
    found = []
    for extra in (lambda a, b: None, lambda a, b: a, lambda a, b: [a, b]):
        main, a, b = OrderedDict(), OrderedDict(), OrderedDict()
        made = handle(main, extra_dict=extra(a, b))
        for each in (main, a, b):
            each.update({made.id: 1, "kept": 2})
        with made:
            found.append([len(main), len(a), len(b)])
        found.append([len(main), len(a), len(b)])
        made.remove()
    return found


def modes_as_decorators_and_copies(torch):
    grad_mode, found = torch.autograd.grad_mode, []

    def state():
        return [torch.is_grad_enabled(), torch.is_inference_mode_enabled()]

    for mode in (torch.no_grad(), torch.enable_grad(), torch.inference_mode(), torch.inference_mode(False)):
        for outer in (torch.no_grad, torch.enable_grad, torch.inference_mode):
            with outer():
                found.append([mode(state)(), mode.clone()(state)(), state()])
    for value in (True, False):
        found.append([torch.set_grad_enabled(value)(state)(), torch.set_grad_enabled(value).clone()(state)()])
        torch.set_grad_enabled(True)
        with grad_mode.set_multithreading_enabled(value) as entered:
            found.append([entered, grad_mode.set_multithreading_enabled(value).mode])
            found.append(grad_mode.set_multithreading_enabled(value).clone().mode)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")

        @torch.no_grad()
        class Decorated:
            def __init__(self):
                self.state = state()

        found.append([Decorated().state, [w.category.__name__ for w in told]])
    return found, state()


def checks_of_gradients_with_options(torch):
    """gradcheck in all its ways, over functions that are right and wrong in one respect each."""

    def function(forward, backward):
        class Made(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                ctx.set_materialize_grads(False)
                return forward(x)

            @staticmethod
            def backward(ctx, *grads):
                return backward(*ctx.saved_tensors, *grads)

        return Made.apply

    count = iter(range(1, 10**6))
    double = torch.float64
    right = function(lambda x: x * x, lambda x, g: None if g is None else 2 * x * g)
    cases = {
        "right": right,
        "wrong": function(lambda x: x * x, lambda x, g: None if g is None else 3 * x * g),
        "added": function(lambda x: x * x, lambda x, g: None if g is None else 2 * x * g + 1e-7),
        "drawn": function(
            lambda x: x * x, lambda x, g: None if g is None else 2 * x * g * (1 + 1e-9 * next(count))
        ),
        "two": lambda x: (x * 2, x.sum() * x),
        "one constant": lambda x: (x * 2, torch.ones(2, dtype=double)),
        "constant": lambda x: torch.ones(2, dtype=double),
        "no constant": lambda x: x.detach() * 2,
        "one of two constant": lambda x: (torch.ones(2, dtype=double), x.detach() * 2),
        "nothing": lambda x: (),
        "whole": lambda x: x.long(),
        "complex": lambda x: torch.complex(x, x * x),
        "unused": lambda x: (x[:1] * 1, x[1:] ** 2),
    }
    check, found = torch.autograd.gradcheck, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, case in cases.items():
            x = _leaf(torch, 0.5, -1.5, dtype=double)
            told = [name]
            for options in (
                {}, {"fast_mode": True}, {"check_undefined_grad": False}, {"check_batched_grad": True},
                {"check_grad_dtypes": True}, {"nondet_tol": 1.0}, {"atol": 10.0},
            ):  # fmt: skip
                told.append(check(case, (x,), raise_exception=False, **options))
            found.append(told)
        empty = torch.zeros(0, dtype=double, requires_grad=True)
        plain = torch.ones(2, dtype=double)
        for options in (
            {},
            {"fast_mode": True},
            {"check_forward_ad": True},
            {"check_forward_ad": True, "fast_mode": True},
        ):
            found.append(
                check(
                    lambda a, b, c: (a * 2, b * c),
                    (empty, _leaf(torch, 1.0, 2.0, dtype=double), plain),
                    **options,
                )
            )
        found.append(refusal(check, right, (plain,)))
        found.append(check(right, (_leaf(torch, 1.0, 2.0),), raise_exception=False))
        found.append(check(right, (_leaf(torch, 1.0, 2.0),), eps=1e-2, atol=1e-2))
        found.append(check(lambda a, b: a * 2, (_leaf(torch, dtype=double), _leaf(torch, dtype=double))))
        found.append(
            torch.autograd.gradgradcheck(lambda v: v**3, (_leaf(torch, dtype=double),), fast_mode=True)
        )
    return found


def warnings_of_gradient_checks(torch):
    """Inputs that are not of double precision are warned of, one by one."""
    found = []
    for dtypes in (
        ("float64", "float64"),
        ("float32", "float64"),
        ("float64", "float32"),
        ("complex64", "complex128"),
    ):
        leaves = [torch.ones(1, dtype=getattr(torch, dtype), requires_grad=True) for dtype in dtypes]
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            torch.autograd.gradcheck(lambda a, b: a * b, leaves, raise_exception=False)
        found.append([str(w.message)[:30] for w in told if "requires gradient" in str(w.message)])
    return found


def strict_derivatives_of_linear_functions(torch):
    functional, x = torch.autograd.functional, torch.tensor([1.0, 2.0])
    linear, square = (lambda v: (v * 3).sum()), (lambda v: (v * v).sum())
    found = []
    for function in (linear, square, lambda v: torch.ones(()), lambda v: (v**3).sum()):
        for create_graph in (False, True):
            options = {"create_graph": create_graph, "strict": True}
            for call in (
                lambda f=function, o=options: functional.hessian(f, x, **o),
                lambda f=function, o=options: functional.jacobian(f, x, **o),
                lambda f=function, o=options: functional.hvp(f, x, x, **o)[1],
                lambda f=function, o=options: functional.vhp(f, x, x, **o)[1],
                lambda f=function, o=options: functional.vjp(f, x, torch.ones(()), **o)[1],
                lambda f=function, o=options: functional.jvp(f, x, x, **o)[1],
            ):
                found.append(refusal(call))
    return found


def the_engine_itself(torch):
    engine = torch.autograd.Variable._execution_engine
    x = _leaf(torch)
    y = x * x
    first = engine.run_backward((y,), (torch.ones(3),), True, False, (x,), allow_unreachable=True)
    engine.run_backward((y,), (torch.ones(3),), False, False, allow_unreachable=True, accumulate_grad=True)
    again = refusal(engine.run_backward, (y,), (torch.ones(3),), False, False, (x,))[0]
    return first, x.grad, again


def classes_of_nodes(torch):
    node = torch.autograd.graph.Node
    x = _leaf(torch)
    made = (x * 2).grad_fn
    return [isinstance(made, node), isinstance(x, node), issubclass(type(made), node), issubclass(int, node)]


def nodes_as_texts_and_metadata(torch):
    x = _leaf(torch)
    parts = (x * 2).split(2)
    found = []
    for y in (x * 2, parts[1], (x * x).sum(), x.view(3, 1)):
        node = y.grad_fn
        found.append(re.sub("0x[0-9a-f]+", "0x", repr(node)))
        found.append(
            [
                [m.shape, str(m.dtype), m.is_nested_tensor, m.is_cpp_nested_tensor]
                for m in node._input_metadata
            ]
        )
    return found


def tangents_that_are_zero(torch):
    fw, found = torch.autograd.forward_ad, []
    x, v = torch.tensor([1.5, -2.0, 0.25]), torch.tensor([3.0, 5.0, 7.0])
    with fw.dual_level():
        dual = fw.make_dual(x, v)
        for y in (dual.floor(), dual.round(), dual.sign(), dual.ceil() * dual, dual.trunc() + 1, dual.frac()):
            found.append(fw.unpack_dual(y).tangent.detach() + 0)
    return found


def tangents_that_a_function_must_not_give(torch):
    def function(tangent):
        class Made(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return x * 2, y * 3, (x * 1).long()

            @staticmethod
            def backward(ctx, *grads):
                return grads[0] * 2, grads[1] * 3

            @staticmethod
            def jvp(ctx, a, b):
                return tangent(a, b)

        return Made.apply

    fw, found = torch.autograd.forward_ad, []
    for tangent in (
        lambda a, b: (a * 2, b * 3, None), lambda a, b: (a[:1], b * 3, None),
        lambda a, b: (a * 2, b * 3, a), lambda a, b: (a * 2, b * 3), lambda a, b: (a * 2, b.sum(), None),
    ):  # fmt: skip
        with fw.dual_level():
            x, y = (fw.make_dual(torch.ones(3) * k, torch.arange(3.0) + k) for k in (1, 2))

            apply = function(tangent)

            def call(x=x, y=y, apply=apply):
                made = apply(x, y)
                return [fw.unpack_dual(part).tangent for part in made]

            found.append(refusal(call)[0])
            if found[-1] == "nothing raised":
                found.append([None if t is None else t.detach() for t in call()])
    return found


def checks_of_second_derivatives_with_options(torch):
    class Second(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, g):
            ctx.save_for_backward(x, g)
            return 2 * x * g

        @staticmethod
        def backward(ctx, h):
            x, g = ctx.saved_tensors
            return 2 * g * h * (1 + noise * next(count)), 2 * x * h

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return Second.apply(*ctx.saved_tensors, g)

    check, count, found, noise = torch.autograd.gradgradcheck, iter(range(10**6)), [], 0.0
    x, seed = (
        _leaf(torch, 0.5, -1.5, dtype=torch.float64),
        torch.ones(2, dtype=torch.float64, requires_grad=True),
    )
    wrong = lambda v: Square.apply(v) * torch.where(v > 0, v, v.detach())  # noqa: E731
    for amount, function in ((0.0, Square.apply), (1e-9, Square.apply), (0.0, wrong)):
        noise = amount
        for options in (
            {}, {"nondet_tol": 1.0}, {"fast_mode": True}, {"fast_mode": True, "nondet_tol": 1.0}, {"check_batched_grad": True},
            {"gen_non_contig_grad_outputs": True}, {"check_grad_dtypes": True}, {"atol": 50.0}, {"rtol": 50.0},
            {"eps": 1e-3}, {"check_undefined_grad": False}, {"grad_outputs": (seed,)},
        ):  # fmt: skip
            found.append(check(function, (x,), raise_exception=False, **options))
        found.append(refusal(check, function, (x,))[0])
    return found


def gradient_checks_beside_another_default_device(torch):
    """What a check makes for itself is on the device of the inputs, not on the default device."""

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g

    double, found = torch.float64, []
    x = _leaf(torch, 0.5, -1.5, dtype=double)
    z = torch.tensor([0.5 + 1j], dtype=torch.complex128, requires_grad=True)
    empty = torch.zeros(0, dtype=double, requires_grad=True)
    with torch.device("meta"):
        for fast in (False, True):
            for forward in (False, True):
                options = {"fast_mode": fast, "raise_exception": False}
                for function, inputs in (
                    (lambda v: v.sin() * v, (x,)),
                    (lambda v, e: (v * v, e * 2), (z, empty)),
                ):
                    told = torch.autograd.gradcheck(function, inputs, check_forward_ad=forward, **options)
                    again = torch.autograd.gradgradcheck(
                        function, inputs, check_fwd_over_rev=forward, **options
                    )
                    found.append((told, again))
            found.append(torch.autograd.gradcheck(Wrong.apply, (x,), **options))
    return found


def refused_options_of_gradient_checks(torch):
    check, x = torch.autograd.gradcheck, _leaf(torch, 0.5, dtype=torch.float64)
    return [
        refusal(check, lambda v: v * 2, (x,), **options)
        for options in (
            {"check_backward_ad": False},
            {"check_backward_ad": False, "check_forward_ad": True},
            {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
            {"check_batched_forward_grad": True},
        )
    ]


def one_of_two_gradients_is_missing(torch):
    """gradcheck hides the gradient of each output by itself."""

    def function(hidden):
        class Two(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(False)
                return x * 2, x * 3

            @staticmethod
            def backward(ctx, a, b):
                if (hidden == 0 and a is None and b is not None) or (
                    hidden == 1 and b is None and a is not None
                ):
                    return torch.ones(2, dtype=torch.float64)
                parts = [g * k for g, k in ((a, 2), (b, 3)) if g is not None]
                return sum(parts) if parts else None

        return Two.apply

    x = _leaf(torch, 0.5, -1.5, dtype=torch.float64)
    return [torch.autograd.gradcheck(function(k), (x,), raise_exception=False) for k in (0, 1, 2)]


def derivatives_of_functions_in_every_mode(torch):
    functional, x, v = (
        torch.autograd.functional,
        torch.tensor([1.0, 2.0], requires_grad=True),
        torch.tensor([3.0, -1.0]),
    )
    found = []
    for mode in (torch.no_grad, torch.enable_grad):
        for create_graph in (False, True):
            with mode():
                made = [
                    functional.vjp(lambda u: u**3, x, v, create_graph=create_graph)[1],
                    functional.jvp(lambda u: u**3, x, v, create_graph=create_graph)[1],
                    functional.vhp(lambda u: (u**3).sum(), x, v, create_graph=create_graph)[1],
                    functional.hvp(lambda u: (u**3).sum(), x, v, create_graph=create_graph)[1],
                    functional.jacobian(lambda u: u**3, x, create_graph=create_graph),
                    functional.hessian(lambda u: (u**3).sum(), x, create_graph=create_graph),
                ]
            found.append([[y.detach() + 0, y.requires_grad] for y in made])
            if create_graph:
                found.append([torch.autograd.grad(y.sum(), x, allow_unused=True) for y in made])
    return found
