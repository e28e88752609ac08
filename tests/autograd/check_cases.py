"""What gradient checks, anomaly detection and checkpoints tell about wrong programs, and batched tangents."""

from __future__ import annotations

import sys
import warnings

from tests.golden.answers import refusal


def _first_words(error: Exception, count: int = 8) -> list:
    return [type(error).__name__, " ".join(str(error).split()[:count])]


def _verdict(torch, function, inputs, count: int = 8, **options):
    try:
        return torch.autograd.gradcheck(function, inputs, **options)
    except (RuntimeError, AssertionError, ValueError) as error:
        return _first_words(error, count)


def _shifted(torch, function):
    """Return the function with gradients that are wrong by a constant."""

    def wrong(x):
        y = function(x)
        y.register_hook(lambda g: g + 0.01)
        return y

    return wrong


def verdicts_of_gradcheck(torch):
    real = torch.linspace(1, 2, 4, dtype=torch.float64).requires_grad_()
    numbers = torch.complex(real.detach(), -real.detach()).requires_grad_()
    found = []
    for wrong, x in (
        (_shifted(torch, torch.clone), real),
        (_shifted(torch, torch.clone), numbers),
        (_shifted(torch, lambda x: torch.complex(x, 2 * x)), real),
        (_shifted(torch, torch.real), numbers),
    ):
        found.append(_verdict(torch, wrong, (x,)))
    one = torch.ones(1, dtype=torch.float64, requires_grad=True)
    for fast in (True, False):
        grown = _verdict(
            torch, lambda x: torch.cat([x, x]) if bool((x >= 1).all()) else x, (one,), fast_mode=fast, count=9
        )
        narrow = _verdict(
            torch, lambda x: x.float() if bool((x >= 1).all()) else x, (one,), fast_mode=fast, count=9
        )
        still = _verdict(torch, torch.sin, (one.expand(3, 2),), fast_mode=fast)
        found += [grown, narrow, still]
    return found


def checks_of_batched_tangents(torch):
    options = {"check_forward_ad": True, "check_batched_forward_grad": True}
    x = torch.linspace(-1, 2, 6, dtype=torch.float64).reshape(2, 3).requires_grad_()
    y = torch.linspace(1, 3, 3, dtype=torch.float64).requires_grad_()
    functions = [
        (torch.sin, (x,)),
        (torch.add, (x, y)),
        (lambda a, b: (a * b).sum(0).cumsum(0), (x, y)),
        (lambda a, b: torch.nn.functional.layer_norm(a @ b.diag(), (3,)), (x, y)),
        (lambda a: a.clone().mul_(2).t()[1:], (x,)),
        (lambda a: torch.cat([a.split(1, 1)[0], a.softmax(1)], 1), (x,)),
    ]
    return [torch.autograd.gradcheck(f, inputs, **options) for f, inputs in functions]


def tangents_inside_of_vmap(torch):
    f = torch.autograd.forward_ad

    def product(function, x):
        def run(v):
            with f.dual_level():
                return f.unpack_dual(function(f.make_dual(x, v))).tangent

        return run

    x = torch.linspace(-1, 2, 6).reshape(2, 3)
    vectors = torch.arange(12.0).reshape(2, 2, 3)

    def written(d):
        z = torch.zeros(3, 2)
        z.t().copy_(d)
        return z * 2

    functions = (torch.exp, lambda d: d.t() @ d, lambda d: d[0].as_strided((2,), (1,), 1), written)
    return [torch._vmap_internals._vmap(product(function, x))(vectors) for function in functions]


def as_strided_inside_of_vmap(torch):
    x = torch.arange(12.0).reshape(3, 4)

    def taken(size, stride, offset=None):
        return torch.func.vmap(lambda row: row.as_strided(size, stride, offset))(x)

    found = [taken((2, 2), (2, 1)), taken((2,), (2,), 1), taken((0,), (1,), 3), taken((2, 4), (0, 1))]
    for arguments in (((5,), (1,)), ((2,), (3,), 1)):
        try:
            found.append(taken(*arguments))
        except RuntimeError as error:
            found.append("can access memory outside of `tensor`" in str(error))
    return found


def reports_of_anomalies(torch):
    """The first words of each warning, and whether it has the line of the call."""

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * 2 + b

        @staticmethod
        def backward(ctx, g):
            return g * 0, g / 0 * 0

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            ctx.save_for_backward(a)
            return a.sum(0, keepdim=True)

        @staticmethod
        def backward(ctx, g):
            (a,) = ctx.saved_tensors
            g = g.clone().expand(3)
            return Inner.apply(g * a, g + a)

    def second():
        x = torch.ones(3, requires_grad=True)
        (g,) = torch.autograd.grad(Outer.apply(x), (x,), create_graph=True)
        return g.sum()

    def overwritten():
        x = torch.ones(3, requires_grad=True)
        a = x + 1
        b = a**2
        a += 1
        return b.sum()

    found = []
    for program, inside in ((second, True), (second, False), (overwritten, True), (overwritten, False)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            before = None if inside else program()
            try:
                with torch.autograd.detect_anomaly():
                    (program() if before is None else before).backward()
            except RuntimeError as error:
                found.append(_first_words(error, 5))
            texts = [str(w.message) for w in caught]
        known = ("Inner.apply(g * a", "Outer.apply(x)", "b = a**2")
        found.append([[" ".join(t.split()[:4]), *(line in t for line in known)] for t in texts])
    return found


def checkpoints_that_differ(torch):
    tools = torch.utils.checkpoint

    def changing():
        calls = []

        def function(x):
            calls.append(1)
            return x.sin().exp() if len(calls) == 1 else x.sin() * torch.ones(2)

        return function

    x = torch.randn(1, requires_grad=True)
    hint = "You are seeing this error because you passed `debug=True` to checkpoint"
    found = []
    for debug in (False, True):
        for setting in (None, False, True):
            with tools.set_checkpoint_debug_enabled(setting):
                out = tools.checkpoint(changing(), x, use_reentrant=False, debug=debug)
            try:
                out.sum().backward()
            except RuntimeError as error:
                found.append([type(error).__name__, hint in str(error), "aten.exp" in str(error)])
    return found


def gradients_inside_of_checkpoints(torch):
    checkpoint = torch.utils.checkpoint.checkpoint

    def slope(x):
        with torch.enable_grad():
            y = x.exp().sin()
            (g,) = torch.autograd.grad(y.sum(), (x,), create_graph=True)
        return g * x

    found = []
    for stop in (True, False):
        x = torch.tensor([0.5, 1.0], requires_grad=True)
        with torch.utils.checkpoint.set_checkpoint_early_stop(stop):
            out = checkpoint(lambda a: checkpoint(slope, a, use_reentrant=False), x, use_reentrant=False)
            found += [out.detach(), *torch.autograd.grad(out.sum(), (x,))]
    return found


def attributes_of_old_programs(torch):
    x = torch.ones(3, requires_grad=True) * 2
    found = [x._grad_fn is x.grad_fn or x._grad_fn.name() == x.grad_fn.name(), x._backward_hooks]
    handle = x.register_hook(len)
    found += [list(x._backward_hooks.values()) == [len], torch.ones(1)._backward_hooks]
    handle.remove()
    for change in (
        lambda: delattr(x, "_grad_fn"),
        lambda: setattr(x, "_grad_fn", 3),
        lambda: delattr(x, "_backward_hooks"),
    ):
        try:
            change()
        except RuntimeError as error:
            found.append(str(error))
    x._grad_fn = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found += [x.grad_fn, x.requires_grad, x.volatile]
    found.append([str(w.message)[:20] for w in caught])
    with torch.inference_mode():
        y = torch.ones(2, 3, requires_grad=True)
        found += [list(y.resize_(3, 1).shape), y.requires_grad]
    return found


def tensors_of_a_cache(torch):
    a, b = torch.ones(1), torch.ones(1)
    found = [torch._C._is_cached_tensor(a)]
    torch._C._set_cached_tensors_enabled(True)
    try:
        torch._C._add_cached_tensor(b)
        found += [torch._C._is_cached_tensor(b), torch._C._is_cached_tensor(a)]
        torch._C._remove_cached_tensor(b)
        found += [torch._C._is_cached_tensor(b)]
    finally:
        torch._C._set_cached_tensors_enabled(False)
    return found


def older_functions_of_gradcheck(torch):
    module = sys.modules[torch.autograd.gradcheck.__module__]
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([3.0], dtype=torch.float64)
    return [
        [t.detach() for t in module._iter_tensors((x, [y, "a"]))],
        [t.detach() for t in module._iter_tensors((x, [y]), True)],
        module.get_numerical_jacobian(lambda t: t[0] ** 2 * t[1], (x, y), eps=1e-6)[0].round(decimals=6),
        refusal(module.get_numerical_jacobian, lambda t: t[0], (x,), grad_out=2.0),
    ]
