"""What gradcheck and gradgradcheck accept and refuse: which input and output is named, tolerances, and each of the options."""

from __future__ import annotations

import sys
import warnings


def _first_words(error):
    """Return how the text of an error begins: without numbers, which may be drawn at random."""
    return [type(error).__name__, " ".join(str(error).lstrip("('").partition("numerical")[0].split()[:14])]


def _verdict(torch, check, function, inputs, **options):
    """Return the answer of a check, or the class and the first words of its error, and how its warnings begin."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = check(function, inputs, **options)
        except (RuntimeError, AssertionError, ValueError, TypeError) as error:
            found = _first_words(error)
    return [
        found,
        sorted({" ".join(str(w.message).split()[:6]) for w in caught if w.category is UserWarning}),
    ]


def _times(torch, factor=3.0, slope=None, tangent=None):
    """Return a Function that multiplies by ``factor``. Its gradient and tangent multiply by other numbers, if these are given."""

    class Times(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * factor

        @staticmethod
        def backward(ctx, g):
            return g * (factor if slope is None else slope)

        @staticmethod
        def jvp(ctx, t):
            return t * (factor if tangent is None else tangent)

    return Times.apply


def _points(torch, *shape, dtype=None):
    count = 1
    for n in shape:
        count *= n
    return torch.linspace(0.5, 2.0, count, dtype=dtype or torch.float64).reshape(shape).requires_grad_()


def which_input_and_output_is_named(torch):
    found = []
    a, b, c = _points(torch, 2), _points(torch, 3), _points(torch, 1)
    for options in ({}, {"fast_mode": True}):
        for place in range(2):
            for other in range(3):
                good, bad = _times(torch), _times(torch, slope=3.01)

                def function(x, y, z, n, *, good=good, bad=bad, place=place, other=other):
                    made = [[good(t) for t in (x, y, z)] for _ in range(2)]
                    made[place][other] = bad((x, y, z)[other])
                    return torch.cat(made[0]), torch.cat(made[1]) * n.numel()

                inputs = (a, b, c, torch.arange(3))
                found.append(_verdict(torch, torch.autograd.gradcheck, function, inputs, **options))
        for other in range(2):

            def function(x, y, *, other=other):
                bad = _times(torch, tangent=3.01)
                return (bad(x) if other == 0 else x * 2).sum() + y.sum(), (
                    bad(y) if other == 1 else y * 2
                ) + x.sum()

            for fixed in (False, True):
                last = b.detach() if fixed else b
                options = options | {"check_forward_ad": True}
                found.append(_verdict(torch, torch.autograd.gradcheck, function, (a, last), **options))
    return found


def tolerances(torch):
    """A central difference of x^3 is off by eps^2."""
    found = []
    x = _points(torch, 3)
    for fast in (False, True):
        for eps, atol, rtol in (
            (0.1, 0.0, 0.0), (0.1, 0.0101, 0.0), (0.1, 0.0099, 0.0), (0.2, 0.0399, 0.0), (0.2, 0.0401, 0.0),
            (0.1, 0.0, 0.02), (0.1, 0.0, 0.0005), (1e-6, 1e-5, 1e-3), (1e-6, 0.0, 1e-6),
        ):  # fmt: skip
            if fast and eps > 1e-6:
                continue  # which element the random direction favours decides
            options = {"eps": eps, "atol": atol, "rtol": rtol, "raise_exception": False, "fast_mode": fast}
            for forward in (False, True):
                options |= {"check_forward_ad": forward, "check_undefined_grad": False}
                found.append(torch.autograd.gradcheck(lambda v: v**3, (x,), **options))
    return found


def each_element_is_compared(torch):
    found = []
    for fast in (False, True):
        for place in range(4):

            def wrong(v, place=place):
                y = v * 2
                y.register_hook(lambda g: g + 0.01 * torch.eye(4, dtype=g.dtype)[place].reshape(g.shape))
                return y

            found.append(
                _verdict(torch, torch.autograd.gradcheck, wrong, _points(torch, 2, 2), fast_mode=fast)[0]
            )
    return found


def tangents_that_are_missing(torch):
    """A tangent of zeros and no tangent must give the same."""

    def function(wrong):
        class Sum(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.set_materialize_grads(False)
                return x + 2 * y, x - y

            @staticmethod
            def backward(ctx, g, h):
                g, h = (0 if t is None else t for t in (g, h))
                found = g + h, 2 * g - h
                return tuple(t if isinstance(t, torch.Tensor) else None for t in found)

            @staticmethod
            def jvp(ctx, t, u):
                off = 0.0
                if (
                    wrong == "x"
                    and t is None
                    or wrong == "y"
                    and u is None
                    or wrong == "both"
                    and (t is None or u is None)
                ):
                    off = 1.0
                t = torch.zeros(2, dtype=torch.float64) if t is None else t
                u = torch.zeros(2, dtype=torch.float64) if u is None else u
                return t + 2 * u, t - u + off

        return Sum.apply

    found = []
    for wrong in (None, "x", "y", "both"):
        for options in ({}, {"check_undefined_grad": False}, {"fast_mode": True}):
            inputs = _points(torch, 2), _points(torch, 2)
            options = options | {"check_forward_ad": True}
            found.append(_verdict(torch, torch.autograd.gradcheck, function(wrong), inputs, **options)[0])
            if isinstance(found[-1], list):
                found[-1][1] = found[-1][1][:26]  # PyTorch's text is a tuple of parts
    return found


def functions_that_depend_on_nothing(torch):
    x, y = _points(torch, 2), _points(torch, 3)
    gradcheck = torch.autograd.gradcheck
    found = []
    for fast in (False, True):
        for options in (
            {},
            {"check_grad_dtypes": True},
            {"check_forward_ad": True},
            {"check_batched_grad": True},
        ):
            options = options | {"fast_mode": fast}
            found += [
                _verdict(torch, gradcheck, lambda a, b: a * 2, (x, y), **options),
                _verdict(torch, gradcheck, lambda a, b: (b * 2, a.detach() * 0), (x, y), **options),
                _verdict(torch, gradcheck, lambda a, b: a.detach() * 2, (x, y), **options),
                _verdict(torch, gradcheck, lambda a, b: a.detach() * 0 + 1, (x, y), **options),
                _verdict(torch, gradcheck, lambda a, b: a, (x.detach(), y.detach()), **options),
                _verdict(torch, gradcheck, lambda a, b: a[:0] * 2, (x, y), **options),
                _verdict(torch, gradcheck, lambda a, b: (a[:0] * 2).sum() + b, (x, y), **options),
            ]
    empty = torch.zeros(0, 3, dtype=torch.float64, requires_grad=True)
    found.append(_verdict(torch, gradcheck, lambda a, b: a.sum() + b, (empty, y)))
    found.append(_verdict(torch, gradcheck, lambda a, b: a * b, (empty, y)))
    return found


def inputs_of_other_kinds(torch):
    gradcheck = torch.autograd.gradcheck
    x = _points(torch, 3)
    single = _points(torch, 3, dtype=torch.float32)
    numbers = torch.complex(_points(torch, 3).detach(), -_points(torch, 3).detach()).requires_grad_()
    found = []
    for fast in (False, True):
        found += [
            _verdict(torch, gradcheck, torch.sin, x, fast_mode=fast),
            _verdict(torch, gradcheck, torch.sin, [x], fast_mode=fast),
            _verdict(torch, gradcheck, torch.sin, (single,), eps=1e-2, atol=1e-2, fast_mode=fast),
            _verdict(torch, gradcheck, torch.mul, (x, numbers), fast_mode=fast),
            _verdict(torch, gradcheck, torch.mul, (x, numbers), fast_mode=fast, check_forward_ad=True),
            _verdict(torch, gradcheck, lambda a, n: a**n, (x, 3), fast_mode=fast),
            _verdict(torch, gradcheck, lambda a, n: a[n], (x, torch.tensor([2, 0])), fast_mode=fast),
            _verdict(torch, gradcheck, lambda a, b: [a * 2, b.abs()], (x, numbers), fast_mode=fast),
            _verdict(
                torch, gradcheck, torch.sin, (x[0].detach().expand(3).requires_grad_(),), fast_mode=fast
            ),
            _verdict(
                torch, gradcheck, torch.sin, (x.detach()[:1].expand(1).requires_grad_(),), fast_mode=fast
            ),
            _verdict(
                torch, gradcheck, torch.sin, (x.detach().expand(2, 3).t().requires_grad_(),), fast_mode=fast
            ),
        ]
    found += [
        _verdict(torch, gradcheck, torch.sin, (x,), check_backward_ad=False),
        _verdict(torch, gradcheck, torch.sin, (x,), check_backward_ad=False, check_batched_grad=True),
        _verdict(torch, gradcheck, torch.sin, (x,), check_batched_forward_grad=True),
        _verdict(torch, gradcheck, torch.sin, (x,), check_backward_ad=False, check_forward_ad=True),
        _verdict(
            torch, gradcheck, _times(torch, slope=9.0), (x,), check_backward_ad=False, check_forward_ad=True
        ),
        _verdict(
            torch, gradcheck, _times(torch, tangent=9.0), (x,), check_backward_ad=False, check_forward_ad=True
        ),
        _verdict(torch, gradcheck, _times(torch, tangent=9.0), (x,)),
        _verdict(torch, gradcheck, _times(torch, slope=9.0), (x,), raise_exception=False),
    ]
    return found


def functions_that_differ_from_call_to_call(torch):
    """The size of the differences between two backward passes, which nondet_tol allows."""
    x = _points(torch, 2)
    found = []
    for off, tolerance in ((2e-7, 0.0), (2e-7, 1e-6), (2e-7, 1e-8), (-2e-7, 1e-8), (0.0, 0.0)):
        for fast in (False, True):
            calls = []

            class Wavering(torch.autograd.Function):
                @staticmethod
                def forward(ctx, v):
                    return v * 2

                @staticmethod
                def backward(ctx, g, calls=calls, off=off):
                    calls.append(1)
                    return g * 2 + off * len(calls) * g

            options = {"nondet_tol": tolerance, "fast_mode": fast}
            found.append(_verdict(torch, torch.autograd.gradcheck, Wavering.apply, (x,), **options)[0])
    return found


def gradients_that_ignore_those_of_the_output(torch):
    x = _points(torch, 2)

    class Fixed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, v, place):
            ctx.place = place
            return v * 1, v * 1

        @staticmethod
        def backward(ctx, g, h):
            return (g + h if (g + h).any() else torch.eye(2, dtype=g.dtype)[ctx.place] * 1e-20), None

    check = torch.autograd.gradcheck
    return [_verdict(torch, check, lambda v, p=p: Fixed.apply(v, p), (x,)) for p in range(2)] + [
        _verdict(torch, check, lambda v: Fixed.apply(v, 0), (x,), raise_exception=False)
    ]


def second_derivatives(torch):
    """gradgradcheck finds a first gradient that is not differentiated rightly."""

    def function(slope, tangent=None):
        square = _times(torch, 3.0, slope, tangent)

        class Cube(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x * x

            @staticmethod
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return square(x) * x * g

        return Cube.apply

    found = []
    x, y = _points(torch, 3), _points(torch, 3)
    check = torch.autograd.gradgradcheck
    for fast in (False, True):
        for options in (
            {},
            {"gen_non_contig_grad_outputs": True},
            {"grad_outputs": (torch.ones(3, dtype=torch.float64),)},
            {"grad_outputs": torch.ones(3, dtype=torch.float64, requires_grad=True)},
            {"atol": 1.0, "rtol": 1.0},
            {"raise_exception": False},
            {"check_batched_grad": True},
            {"check_undefined_grad": False},
            {"check_fwd_over_rev": True, "check_rev_over_rev": False},
            {"check_fwd_over_rev": True, "check_rev_over_rev": False, "check_undefined_grad": False},
            {
                "check_rev_over_rev": False,
                "check_fwd_over_rev": True,
                "check_undefined_grad": False,
                "check_batched_grad": True,
            },
            {"check_fwd_over_rev": True, "check_undefined_grad": False},
            {"check_rev_over_rev": False},
        ):
            options = options | {"fast_mode": fast}
            found.append(_verdict(torch, check, function(3.0), (x,), **options))
            if "check_fwd_over_rev" not in options:
                found.append(_verdict(torch, check, function(3.3), (x,), **options))
            else:
                found.append(_verdict(torch, check, function(3.0, 3.3), (x,), **options))
        found.append(
            _verdict(torch, check, lambda a, b: (a * b, a.detach(), (a * a).sum()), (x, y), fast_mode=fast)
        )
        found.append(_verdict(torch, check, lambda a, n: a**n, (x, 3), fast_mode=fast))
        found.append(_verdict(torch, check, lambda a: a * 2, (x,), fast_mode=fast))
        found.append(_verdict(torch, check, lambda a: (a * 2, a**3), (x,), fast_mode=fast))
    strides = []

    def seen(v):
        y = v**3
        y.register_hook(lambda g: strides.append([list(g.stride()), g.requires_grad]))
        return y

    for wide in (False, True):
        check(seen, (x,), gen_non_contig_grad_outputs=wide)
        found.append(strides[0])
        strides.clear()
    return found


def jacobians_of_older_programs(torch):
    module = sys.modules[torch.autograd.gradcheck.__module__]
    x, y = _points(torch, 2), _points(torch, 3)
    numeric = module._get_numerical_jacobian

    def rounded(found):
        return [[m.round(decimals=5) for m in row] for row in found]

    return [
        rounded(numeric(lambda a, b: (a * b[:2], b.sum()), (x, y), eps=1e-6)),
        rounded(numeric(lambda a, b: (a * b[:2]).sum(), (x, y.detach()), eps=1e-6)),
        rounded(numeric(lambda a, b: a.sum() * b, (x, y), target=(y,), eps=1e-6)),
        rounded(numeric(lambda a: a.sum() ** 3, (x,), eps=0.5)),
        rounded([[m] for m in module.get_numerical_jacobian(lambda t: t[0] ** 3, (x,), eps=0.5)]),
        rounded(
            [
                [m]
                for m in module.get_numerical_jacobian(
                    lambda t: t[0].sum() * t[1], (x, y), target=y, eps=1e-6
                )
            ]
        ),
    ]
