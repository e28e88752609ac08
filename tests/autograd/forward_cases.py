"""Forward-mode differentiation: what has a tangent, which memory it shares, and what custom Functions must return."""

from __future__ import annotations

from tests.golden.answers import refusal


def _tangent(torch, x):
    found = torch.autograd.forward_ad.unpack_dual(x).tangent
    return None if found is None else found.detach().clone()


def _duals(torch):
    """Yield pairs of a dual tensor and its tangent: without and with a graph."""
    for requires_grad in (False, True):
        x, v = torch.arange(6.0).reshape(2, 3).requires_grad_(requires_grad), torch.ones(2, 3)
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, v)
            yield dual.clone() if requires_grad else dual, v


def duals_require_no_grad(torch):
    return [[d.requires_grad, d.is_leaf, (d * 2).requires_grad] for d, _ in _duals(torch)]


def writes_to_views_of_duals(torch):
    found = []
    for d, v in _duals(torch):
        row, column = d[0], d.t()[:, 1]
        row.mul_(3)
        column.mul_(torch.tensor([1.0, 2.0, 3.0]))
        found += [_tangent(torch, t) for t in (d, row, column)] + [v.clone()]
        z = torch.zeros(3, 2)
        z.t()[1] = d[1]
        found += [_tangent(torch, z), _tangent(torch, z.sum())]
        u = torch.zeros(2, 3)
        u.copy_(d)
        found.append(_tangent(torch, u))
        u.zero_()
        found += [_tangent(torch, u), _tangent(torch, d)]
        u += d
        found.append(_tangent(torch, u))
        d[d > 2] = 0
        found.append(_tangent(torch, d))
        d[0] = torch.ones(3)
        found.append(_tangent(torch, d))
    return found


def tangents_of_operators(torch):
    found = []
    for d, _ in _duals(torch):
        parts = d.reshape(-1)[1:3].chunk(2)
        found += [_tangent(torch, parts[1]), _tangent(torch, parts[1].exp())]
        found += [_tangent(torch, torch.stack(d.unbind(), 1)), *(_tangent(torch, t) for t in torch.max(d, 1))]
        found.append(
            _tangent(torch, torch.nn.functional.linear(d, torch.full((2, 3), 0.5, requires_grad=True)))
        )
        torch.manual_seed(0)
        dropped = torch.nn.functional.dropout(d, 0.5)
        found += [dropped.detach().clone(), _tangent(torch, dropped), torch.rand(1)]
        with torch.no_grad():
            found.append(_tangent(torch, d * 2))
        found.append(_tangent(torch, torch.view_as_complex(d.reshape(3, 2))))
        found += [_tangent(torch, d.detach()), _tangent(torch, d.clone().detach_()), _tangent(torch, d > 1)]
        found.append(_tangent(torch, torch.nn.BatchNorm1d(3)(d + d * d)))
    return found


def gradients_have_tangents(torch):
    """Forward over reverse, also where the dual tensor itself requires no grad."""
    found = []
    for d, _ in _duals(torch):
        w = torch.tensor([1.0, -2.0, 0.5], requires_grad=True)
        y = ((w * d).sin() * (d.exp() / 9)).sum()
        for create_graph in (True, False):
            (g,) = torch.autograd.grad(y, w, create_graph=create_graph, retain_graph=True)
            found += [g.detach(), _tangent(torch, g), g.requires_grad]
    return found


def refused_duals(torch):
    f = torch.autograd.forward_ad
    x = torch.ones(2)

    class NoJvp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    with f.dual_level():
        d = f.make_dual(x, x * 2)
        return [
            refusal(f.make_dual, x, d),
            refusal(f.make_dual, d, x),
            refusal(torch.add, d, 1, out=torch.ones(2)),
            refusal(NoJvp.apply, d),
            refusal(torch.igamma, d, d)[0],
            str(d),
            str(f.unpack_dual(d).primal),
        ]


def functions_with_a_jvp(torch):
    """What jvp may return for an input that forward writes, for a view, and for what has no derivative."""
    f = torch.autograd.forward_ad

    class Written(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, kind):
            ctx.kind = kind
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def jvp(ctx, t, _):
            if ctx.kind == "other":
                return t * 2
            t.mul_(2)
            return t.clone() if ctx.kind == "copy" else t

    class View(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, kind):
            ctx.kind = kind
            return x[:1]

        @staticmethod
        def jvp(ctx, t, _):
            return t[:1].clone() if ctx.kind == "copy" else t[:1]

    class Fixed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, kind):
            ctx.kind = kind
            y = x.clone()
            ctx.mark_non_differentiable(y)
            return x * 1, y

        @staticmethod
        def jvp(ctx, t, _):
            return {"none": (t, None), "given": (t, t), "one": t}[ctx.kind]

    found = []
    for function, kinds in (
        (Written, ("same", "other", "copy")),
        (View, ("view", "copy")),
        (Fixed, ("none", "given", "one")),
    ):
        for kind in kinds:
            with f.dual_level():
                d = f.make_dual(torch.ones(2), torch.tensor([1.0, 2.0]))
                try:
                    out = function.apply(d, kind)
                except RuntimeError as error:
                    found.append([type(error).__name__, str(error)])
                    continue
                found.append([_tangent(torch, o) for o in (out if isinstance(out, tuple) else (out,))])
    return found


def tangents_of_views_that_are_older_than_those_of_their_base(torch):
    """A view has the tangent of its base, which came when the base was written."""
    f = torch.autograd.forward_ad
    with f.dual_level():
        base = torch.zeros(2, 3)
        views = [base[1], base.t(), base[:, 1:2], base[2:], base.view(-1)[1::2], base.view(3, 2)]
        base.copy_(f.make_dual(torch.arange(6.0).reshape(2, 3), torch.arange(6.0).reshape(2, 3) + 1))
        found = [_tangent(torch, v) for v in views] + [_tangent(torch, views[0].exp())]
        views[0].mul_(2)
        return [*found, _tangent(torch, base), _tangent(torch, views[1])]
