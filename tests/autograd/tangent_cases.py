"""Tangents of forward mode: their memory, views of other kinds, in-place operators, arguments by name, and gradients."""

from __future__ import annotations

import warnings

from tests.golden.answers import refusal


def _tangent(torch, x):
    found = torch.autograd.forward_ad.unpack_dual(x).tangent
    return None if found is None else found.detach().clone()


def _numbers(torch, *shape, dtype=None):
    count = 1
    for n in shape:
        count *= n
    return torch.linspace(-1.0, 2.0, max(count, 1), dtype=dtype)[:count].reshape(shape)


def memory_of_given_tangents(torch):
    """A tangent in the layout of its primal is used as it is, and another one is copied. A write to the dual tensor shows which."""
    f = torch.autograd.forward_ad
    wide = _numbers(torch, 12)
    found = []
    for x, v in (
        (torch.ones(6), torch.ones(6)),
        (torch.ones(6), torch.ones(12)[:6]),
        (torch.ones(12)[:6], torch.ones(6)),
        (torch.ones(12)[:6], torch.ones(12)[:6]),
        (torch.ones(12)[:6], torch.ones(12)[6:]),
        (torch.ones(12)[::2], torch.ones(12)[::2]),
        (torch.ones(2, 3), torch.ones(3, 2).t()),
        (torch.ones(3, 2).t(), torch.ones(2, 3)),
        (torch.ones(3, 2).t(), torch.ones(3, 2).t()),
        (torch.ones(6), torch.ones(6, dtype=torch.float64)),
        (torch.ones(6), torch.ones(1).expand(6)),
        (torch.ones(1, 6), torch.ones(6, 1).t()),
        (torch.ones(0, 3), torch.ones(0, 3)),
        (wide[3:9], wide[3:9]),
    ):
        v = v.clone(memory_format=torch.preserve_format) if v is wide else v
        before = v.clone()
        with f.dual_level():
            d = f.make_dual(x, v)
            d.mul_(3)
            t = _tangent(torch, d)
            found.append([bool((v == before).all()), t, t.dtype, list(f.unpack_dual(d).tangent.stride())])
    return found


def tangents_of_views_made_before(torch):
    """A base that gets its tangent by a later write gives views of it to its own views, also to those of another dtype."""
    f = torch.autograd.forward_ad
    found = []
    with f.dual_level():
        numbers = torch.zeros(2, 3, dtype=torch.complex64)
        parts = torch.view_as_real(numbers)
        pieces = [parts, parts[1], parts[..., 1], numbers.real, numbers[:, 1:].imag]
        value = torch.complex(_numbers(torch, 2, 3), _numbers(torch, 2, 3) * 2)
        numbers.copy_(f.make_dual(value, value * 3))
        found += [_tangent(torch, p) for p in pieces]
        found.append(_tangent(torch, parts.exp()))
    with f.dual_level():
        reals = torch.zeros(3, 2)
        numbers = torch.view_as_complex(reals)
        reals.copy_(f.make_dual(_numbers(torch, 3, 2), _numbers(torch, 3, 2) * 3))
        found += [_tangent(torch, numbers), _tangent(torch, numbers[1:]), _tangent(torch, numbers * 2)]
    with f.dual_level():
        base = torch.zeros(4)
        empty, half = base[4:], base[2:]
        base.copy_(f.make_dual(_numbers(torch, 4), _numbers(torch, 4) * 3))
        found += [_tangent(torch, empty), _tangent(torch, half), _tangent(torch, half)]
        found.append(f.unpack_dual(half).tangent is f.unpack_dual(half).tangent)
    return found


def views_of_duals_of_another_dtype(torch):
    f = torch.autograd.forward_ad
    with f.dual_level():
        x = torch.complex(_numbers(torch, 2, 3), _numbers(torch, 2, 3) * 2)
        d = f.make_dual(x.clone(), x * 3)
        parts = torch.view_as_real(d)
        found = [_tangent(torch, t) for t in (parts, d.real, d.imag, parts[..., 0].exp())]
        parts.mul_(2)
        found.append(_tangent(torch, d))
        d.imag.mul_(5)
        return [*found, _tangent(torch, d), _tangent(torch, parts)]


def views_of_parts_of_a_storage_in_another_dtype(torch):
    """The primal begins in the middle of its storage, and the tangent in the middle of another one or at its start."""
    f = torch.autograd.forward_ad
    found = []
    for tangent_in_the_middle in (True, False):
        wide = torch.complex(_numbers(torch, 6), _numbers(torch, 6) * 2)
        narrow = wide.clone() * 3
        with f.dual_level():
            d = f.make_dual(wide[2:5], narrow[2:5] if tangent_in_the_middle else narrow[:3].clone())
            parts = torch.view_as_real(d[1:])
            found.append(_tangent(torch, parts))
            parts.mul_(2)
            found.append(_tangent(torch, d))
        reals = _numbers(torch, 12).reshape(6, 2)
        with f.dual_level():
            d = f.make_dual(reals[2:5], reals[2:5] * 3 if tangent_in_the_middle else (reals * 3)[:3].clone())
            numbers = torch.view_as_complex(d[1:])
            found.append(_tangent(torch, numbers))
            numbers.mul_(2)
            found.append(_tangent(torch, d))
    return found


def values_without_a_tangent(torch):
    """The primal that was unpacked, what is detached, and what is computed while tangents are off have none."""
    f = torch.autograd.forward_ad
    x, v = _numbers(torch, 3), torch.ones(3)
    found = []
    with f.dual_level():
        d = f.make_dual(x, v)
        primal = f.unpack_dual(d).primal
        found += [_tangent(torch, primal), _tangent(torch, primal * 2), _tangent(torch, d)]
        z = d.clone()
        z.detach_()
        found += [_tangent(torch, z), _tangent(torch, z[0]), _tangent(torch, z * 2)]
        with f._set_fwd_grad_enabled(False):
            off = d * 2
            found += [_tangent(torch, d), _tangent(torch, off)]
        found += [_tangent(torch, off), _tangent(torch, d * 2)]
        whole = (d > 0).to(torch.int64)
        found += [_tangent(torch, whole), _tangent(torch, (d * 4).long()), _tangent(torch, d.argmax())]
        found += [_tangent(torch, torch.zeros_like(d)), _tangent(torch, d.new_ones(2))]
    return [*found, _tangent(torch, d)]


def operators_with_duals_by_name(torch):
    f, F = torch.autograd.forward_ad, torch.nn.functional
    x = _numbers(torch, 2, 3)
    found = []
    with f.dual_level():
        d, e = f.make_dual(x, x * 2), f.make_dual(x[0].clone(), x[1].clone())
        found.append(_tangent(torch, torch.add(input=x, other=d)))
        found.append(_tangent(torch, torch.add(input=d, other=x, alpha=3)))
        found.append(_tangent(torch, F.linear(input=x, weight=d, bias=torch.ones(2))))
        found.append(
            _tangent(torch, F.linear(x, d, bias=f.make_dual(torch.ones(2), torch.tensor([1.0, 2.0]))))
        )
        found.append(_tangent(torch, torch.where(condition=x > 0, input=d, other=e)))
        found.append(_tangent(torch, torch.cat(tensors=[x, d, e[None]])))
        found.append(_tangent(torch, torch.einsum("ij,j->i", d, e)))
        w = torch.ones(3, requires_grad=True)
        found.append(_tangent(torch, torch.mul(input=w, other=d)))
        u = torch.zeros(2, 3)
        found.append(_tangent(torch, torch.Tensor.add_(u, other=d, alpha=2)))
        found += [_tangent(torch, u), _tangent(torch, torch.max(d, dim=1).values)]
    return found


def operators_that_write(torch):
    """In-place forms by any of their names. The tangent follows what the operator writes."""
    f, F = torch.autograd.forward_ad, torch.nn.functional
    x = _numbers(torch, 3, 4)
    found = []

    def one(function, primal=x):
        with f.dual_level():
            d = f.make_dual(primal.clone(), torch.ones_like(primal) * 2)
            result = function(d)
            found.append(
                [d.detach().clone(), _tangent(torch, d), _tangent(torch, result) if result is not None else 0]
            )

    for name in (
        "relu",
        "leaky_relu",
        "elu",
        "silu",
        "hardtanh",
        "threshold",
        "selu",
        "celu",
        "mish",
        "hardswish",
    ):
        extra = (0.5, 0.1) if name == "threshold" else ()
        one(lambda d, name=name, extra=extra: getattr(F, name)(d, *extra, inplace=True))
    one(lambda d: F.dropout(d, 1.0, inplace=True))
    one(lambda d: F.dropout(d, 0.0, inplace=True))
    one(lambda d: F.relu_(d))
    one(lambda d: d.t_())
    one(lambda d: d.unsqueeze_(0))
    one(lambda d: d.transpose_(0, 1).mul_(3))
    one(lambda d: d.fill_diagonal_(7.0))
    one(lambda d: d.index_add_(0, torch.tensor([1]), d[:1].clone()))
    one(lambda d: d.clamp_(-0.5, 0.5).sqrt())
    one(lambda d: d.__ipow__(2))
    one(lambda d: d.__setitem__((slice(None), 1), d[:, 0].clone()))
    one(lambda d: d.__setitem__(d > 1, 0.5))
    one(lambda d: torch.nn.init.ones_(d))
    one(lambda d: d.lerp_(torch.zeros_like(d), 0.25))
    one(lambda d: d.masked_scatter_(d > 0, d.flip(0)))
    one(lambda d: d.data.mul_(2))
    return found


def writes_of_duals_into_views(torch):
    """A write of a dual tensor into a view gives the whole base a tangent, which is zero elsewhere."""
    f = torch.autograd.forward_ad
    found = []
    for dtype in (torch.float32, torch.float64):
        for place in (
            lambda b: b[0],
            lambda b: b[:, 1],
            lambda b: b.t()[1],
            lambda b: b.view(2, 3),
            lambda b: b.view(-1),
            lambda b: b.t(),
            lambda b: b[1:, 1:],
        ):
            with f.dual_level():
                base = _numbers(torch, 2, 3).to(dtype)
                view = place(base)
                x = _numbers(torch, *view.shape)
                view.add_(f.make_dual(x, x + 1))
                found += [_tangent(torch, base), _tangent(torch, view), _tangent(torch, base.sum(0))]
                base.mul_(2)
                found += [_tangent(torch, view)]
    with f.dual_level():
        base = torch.zeros(3, 2).t()
        base[1].copy_(f.make_dual(torch.ones(3), torch.ones(3)))
        found += [_tangent(torch, base), list(f.unpack_dual(base).tangent.stride())]
        whole = torch.zeros(2, dtype=torch.int64)
        whole.copy_(f.make_dual(torch.ones(2), torch.ones(2)))
        found.append(_tangent(torch, whole))
    return found


def gradients_after_writes(torch):
    """The tangent of a gradient counts each value that a dual tensor had."""
    f = torch.autograd.forward_ad
    found = []
    w = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
    with f.dual_level():
        d = f.make_dual(_numbers(torch, 3), torch.ones(3))
        first = (w.exp() * d).sum()
        (g,) = torch.autograd.grad(first, w)
        found += [g, _tangent(torch, g)]
        d.mul_(2)
        y = (w.sin() * d * d).sum()
        for create_graph in (True, False):
            (g,) = torch.autograd.grad(y, w, create_graph=create_graph, retain_graph=True)
            found += [g.detach(), _tangent(torch, g)]
        d = f.make_dual(w, torch.ones(3))
        y = (d**3).sum()
        (g,) = torch.autograd.grad(y, w, create_graph=True)
        found += [g.detach(), _tangent(torch, g)]
        other = torch.ones(2, requires_grad=True)
        (g, none) = torch.autograd.grad(y, (w, other), allow_unused=True, retain_graph=True)
        found += [_tangent(torch, g), none]
        outer = f.make_dual(torch.ones(3), torch.tensor([1.0, 2.0, 3.0]))
        (g,) = torch.autograd.grad(w**2, w, outer)
        found += [g, _tangent(torch, g)]
        (g,) = torch.autograd.grad((other * 3).sum(), other)
        found += [g, _tangent(torch, g)]
        v = torch.ones(3, requires_grad=True)
        t = f.unpack_dual(f.make_dual(w, v) ** 2).tangent
        found += [t.detach(), *torch.autograd.grad(t.sum(), (w, v))]
        t = f.unpack_dual(f.make_dual(_numbers(torch, 3), v).sin()).tangent
        found += [t.requires_grad, *torch.autograd.grad(t.sum(), v)]
        with torch.no_grad():
            found.append(f.unpack_dual(f.make_dual(w, v) ** 2).tangent.requires_grad)
    return found


def writes_with_gradients(torch):
    """In-place operators of duals that require no grad with tensors that do, and gradients afterwards."""
    f = torch.autograd.forward_ad
    w = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
    found = []

    def both(make):
        with f.dual_level():
            y = make(f.make_dual(_numbers(torch, 3), torch.tensor([1.0, 2.0, 3.0])))
            found.append([y.requires_grad, y.detach().clone(), _tangent(torch, y)])
            if y.requires_grad:
                for create_graph in (True, False):
                    (g,) = torch.autograd.grad(y.exp().sum(), w, create_graph=create_graph, retain_graph=True)
                    found.append([g.detach(), _tangent(torch, g), g.requires_grad])

    both(lambda d: (w * 1).mul_(d))
    both(lambda d: (w * 1).mul_(other=d))
    both(lambda d: (w * 1).add_(other=d, alpha=2))
    both(lambda d: (w * 1).addcmul_(w * w, d, value=0.5))
    both(lambda d: d.clone().mul_(w))
    both(lambda d: d.clone().mul_(d))
    both(lambda d: (w * d).mul_(d))
    both(lambda d: torch.zeros(3).add_(d))
    both(lambda d: w.detach().clone().mul_(d))
    both(lambda d: torch.broadcast_tensors(d, w)[0] * torch.broadcast_tensors(d, w)[1])
    both(lambda d: torch.stack([d, w]).prod(0))
    both(lambda d: torch.lerp(d, w, 0.25))
    with torch.no_grad(), f.dual_level():
        v = torch.ones(3, requires_grad=True)
        d = f.make_dual(_numbers(torch, 3), v)
        d.mul_(2)
        found += [_tangent(torch, d), v.detach().clone(), v.is_leaf]
    with torch.no_grad():
        both(lambda d: (w * 1).mul_(d))
        both(lambda d: w * d)
    return found


def operators_that_return_their_argument(torch):
    """The dual tensor stays the same, with the tangent that its views share."""
    f = torch.autograd.forward_ad
    found = []
    for function in (
        torch.Tensor.contiguous,
        lambda d: d.to(torch.float32),
        lambda d: d.expand_as(d),
        lambda d: d.requires_grad_(False),
        lambda d: torch.nn.functional.dropout(d, 0.5, training=False),
        torch.positive,
    ):
        with f.dual_level():
            d = f.make_dual(_numbers(torch, 2, 3), torch.ones(2, 3))
            row = d[0]
            same = function(d)
            row.mul_(3)
            found.append([same is d, _tangent(torch, d), _tangent(torch, same)])
    return found


def random_operators(torch):
    """A random operator draws the same numbers for the value and for the tangent, and no others afterwards."""
    f, F = torch.autograd.forward_ad, torch.nn.functional
    found = []
    w = torch.full((2, 3), 0.5, requires_grad=True)
    x = torch.arange(1.0, 7.0).reshape(2, 3)
    for function in (
        lambda d: F.dropout(d, 0.5),
        lambda d: F.dropout(d * w, 0.5),
        lambda d: F.dropout(d.clone(), 0.5, inplace=True),
        lambda d: F.alpha_dropout(d, 0.5, True),
        lambda d: torch.bernoulli(d / 10),
        lambda d: d.clone().normal_(),
        lambda d: d.clone().uniform_() * d,
        lambda d: (
            F.feature_dropout(d[None], 0.5, True)
            if hasattr(F, "feature_dropout")
            else F.dropout1d(d[None], 0.5)
        ),
    ):
        with f.dual_level():
            d = f.make_dual(x.clone(), x * 2)
            torch.manual_seed(7)
            y = function(d)
            after = torch.rand(1)
            t = _tangent(torch, y)
            torch.manual_seed(7)
            plain = function(x.clone())
            same = bool((plain == y).all()) and bool((torch.rand(1) == after).all())
            kept = plain != 0
            found.append(
                [same, t is None or bool((t[~kept] == 0).all()), t is None or bool((t[kept] != 0).any())]
            )
    return found


def levels_and_refusals(torch):
    f = torch.autograd.forward_ad
    x = torch.ones(2)
    whole = torch.ones(2, dtype=torch.int64)
    found = [refusal(f.make_dual, x, x), refusal(f.exit_dual_level), f._current_level]
    found.append(list(map(str, f.unpack_dual(x)))[1])
    with f.dual_level() as level:
        found += [level, f._current_level, refusal(f.enter_dual_level), refusal(f.exit_dual_level, level=1)]
        found += [refusal(f.make_dual, whole, x), refusal(f.make_dual, x, whole)]
        found += [refusal(f.make_dual, x, torch.ones(3)), refusal(f.make_dual, torch.ones(0), x)]
        d = f.make_dual(x, x)
        out = torch.zeros(2)
        found += [refusal(torch.add, d, 1, out=out), refusal(torch.max, d, 0, out=(out[0], whole[0]))]
        found += [_tangent(torch, torch.add(d, 1, out=None))]
        made = f.make_dual(torch.ones(2, dtype=torch.complex64), torch.ones(2, dtype=torch.complex64))
        found.append(_tangent(torch, made * 2))
    found += [f._current_level, _tangent(torch, d), refusal(f.exit_dual_level, level=0)]
    return found


def inside_of_vmap(torch):
    """Primals and tangents of any layout, in-place operators and views, inside of vmap over the tangents."""
    f = torch.autograd.forward_ad
    wide = _numbers(torch, 4, 3)
    vectors = torch.arange(24.0).reshape(2, 4, 3) / 7

    def written(d):
        z = torch.zeros(4, 3)
        z[1:].copy_(d[1:])
        return z

    def whole(d):
        z = torch.zeros(4, 3)
        z.copy_(d)
        z.mul_(2)
        return z

    functions = (
        torch.exp, lambda d: d.mul(2).t() @ d, lambda d: d.clone().mul_(d), written, whole,
        lambda d: d.t()[1:].exp(), lambda d: d.clone()[1].zero_(), lambda d: d.prod(1).cumsum(0),
    )  # fmt: skip
    found = []
    for primal in (wide, wide.t().contiguous().t(), torch.cat([wide, wide], 1)[:, ::2]):
        for function in functions:

            def product(v, primal=primal, function=function):
                with f.dual_level():
                    t = f.unpack_dual(function(f.make_dual(primal.clone(), v))).tangent
                    return torch.zeros(()) if t is None else t

            for dims in (0, 2):
                rows = vectors if dims == 0 else vectors.permute(1, 2, 0)
                together = torch._vmap_internals._vmap(product, dims)(rows)
                alone = torch.stack([product(v) for v in vectors])
                found.append(bool(torch.allclose(together, alone)))
        found.append(together)
    return found


def functions_with_views_and_jvps(torch):
    """What jvp may return for views of an input, by which input has which tangent."""
    f = torch.autograd.forward_ad

    class View(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, kind):
            ctx.kind = kind
            return x.view_as(x) if kind.startswith("whole") else x[1:]

        @staticmethod
        def jvp(ctx, t, u, _):
            kind = ctx.kind
            if kind.endswith("copy"):
                return t.clone() if kind.startswith("whole") else t[1:].clone()
            if kind.endswith("other"):
                return torch.ones(4)[1:] if u is None else u[1:]
            return t.view_as(t) if kind.startswith("whole") else t[1:]

    base = torch.zeros(4)
    x, v = _numbers(torch, 3), torch.tensor([1.0, 2.0, 3.0])

    def of_written_base():
        whole = torch.zeros(4)
        part = whole[1:]
        whole.copy_(f.make_dual(torch.ones(4), torch.arange(4.0)))
        return part

    found = []
    for made in (
        lambda: f.make_dual(x, v),
        lambda: f.make_dual(x, v) * 1,
        lambda: f.make_dual(base, torch.arange(4.0))[1:],
        lambda: (f.make_dual(base, torch.arange(4.0)) * 1)[1:],
        of_written_base,
    ):
        for kind in ("part", "part copy", "part other", "whole", "whole copy"):
            for dual in (False, True):
                with f.dual_level():
                    d, e = made(), f.make_dual(x.clone(), v * 5) if dual else x.clone()
                    try:
                        found.append(_tangent(torch, View.apply(d, e, kind)))
                    except RuntimeError as error:
                        found.append([type(error).__name__, str(error)])
    return found


def functions_with_several_results(torch):
    """Which result has which tangent: a number, an input as it is, one that forward wrote, and one that is not differentiable."""
    f = torch.autograd.forward_ad

    class Several(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, scale, mode):
            ctx.mode, ctx.scale = mode, scale
            ctx.set_materialize_grads(mode != "plain")
            ctx.save_for_forward(x, y)
            whole = (x * 2).long()
            return x * scale, whole, x + y

        @staticmethod
        def jvp(ctx, t, u, *rest):
            x, y = ctx.saved_tensors
            assert rest == (None, None)
            if ctx.mode == "shape":
                return t[:1], None, t
            if ctx.mode == "number":
                return t, t, t
            if ctx.mode == "few":
                return t, None
            first = None if t is None else t * ctx.scale
            parts = [p for p in (t, u) if p is not None]
            return first, None, sum(parts)

    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(y)
            y.mul_(x)
            return x, y

        @staticmethod
        def jvp(ctx, t, u):
            if u is not None:
                u.mul_(2)
            return t, u

    x, v = _numbers(torch, 3), torch.tensor([1.0, 2.0, 3.0])
    found = []
    for mode in ("full", "plain", "shape", "number", "few"):
        for first, second in ((True, True), (True, False), (False, mode != "plain"), (False, False)):
            with f.dual_level(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                d = f.make_dual(x.clone(), v) if first else x.clone()
                e = f.make_dual(x.clone(), v * 10) if second else x.clone()
                try:
                    found.append([_tangent(torch, r) for r in Several.apply(d, e, 3.0, mode)])
                except (RuntimeError, AttributeError, TypeError) as error:
                    found.append([type(error).__name__, str(error)[:60]])
                try:
                    found.append([_tangent(torch, r) for r in Same.apply(d, e)] + [_tangent(torch, e)])
                except RuntimeError as error:
                    found.append([type(error).__name__, str(error)])
    return found


def views_of_the_memory_between_elements(torch):
    """A tangent gets the layout of its primal. A view of the memory between its elements reads zeros."""
    f = torch.autograd.forward_ad
    base, found = _numbers(torch, 12), []
    for x, size, stride, offset in (
        (base[::2], (11,), (1,), 0),
        (base[1::3], (10,), (1,), 1),
        (base.view(3, 4)[:, 1:3], (10,), (1,), 1),
        (base.view(3, 4).t()[1:], (9,), (1,), 1),
    ):
        with f.dual_level():
            v = torch.arange(1.0, x.numel() + 1).view(x.shape)
            found.append(_tangent(torch, f.make_dual(x, v).as_strided(size, stride, offset)))
    return found
