"""autograd.Function, saved-tensor hooks and checkpoint."""

from __future__ import annotations

from tests.golden.answers import refusal


def _leaf(torch, *values):
    return torch.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def _square(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 2 * x * g

    return Square


def _same(torch, factor=1):
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g * factor

    return Same


def once_and_twice(torch):
    x = _leaf(torch)
    y = _square(torch).apply(x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    return y, g, torch.autograd.grad(g.sum(), x), type(y.grad_fn).__name__, y.is_leaf


def an_input_handed_back_where_nothing_is_recorded(torch):
    Same = _same(torch)

    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x = Same.apply(x)
            with torch.enable_grad():
                x.requires_grad = True
                ctx.x, ctx.y = x, x * 3
            return ctx.y.detach()

        @staticmethod
        def backward(ctx, g):
            ctx.y.backward(g)
            return ctx.x.grad

    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                return x * 2

        @staticmethod
        def backward(ctx, g):
            return g

    seen = []
    leaf = _leaf(torch)
    for mode in (False, True):
        for x in (leaf, leaf * 2, leaf.detach()):
            with torch.set_grad_enabled(mode):
                y = Same.apply(x)
            seen.append([y is x, y.requires_grad, y.is_leaf, y._is_view(), y.data_ptr() == x.data_ptr()])
    with torch.no_grad():
        made = Made.apply(leaf)
    Nested.apply(leaf * 2).sum().backward()
    return seen, made.requires_grad, made.is_leaf, leaf.grad


def inside_forward_nothing_is_recorded(torch):
    seen = []

    class Look(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, number, text):
            seen.append([torch.is_grad_enabled(), x.requires_grad, number, text, list(ctx.needs_input_grad)])
            return x + 0

        @staticmethod
        def backward(ctx, g):
            seen.append([torch.is_grad_enabled(), list(ctx.needs_input_grad)])
            return g, None, None

    Look.apply(_leaf(torch), 3, "a").sum().backward()
    return seen


def many_outputs_and_materialised_gradients(torch):
    seen = []

    def make(materialize):
        class Two(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                ctx.set_materialize_grads(materialize)
                return x * 2, y * 3

            @staticmethod
            def backward(ctx, a, b):
                seen.append([a, b])
                return (None if a is None else a * 2), (None if b is None else b * 3)

        return Two

    for materialize in (True, False):
        x, y = _leaf(torch), _leaf(torch)
        make(materialize).apply(x, y)[0].sum().backward()
        seen.append([x.grad, y.grad])
    return seen


def mark_dirty(torch):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = _leaf(torch)
    y = x * 1
    z = Twice.apply(y)
    z.sum().backward()
    return z is y, y, x.grad, y._version, refusal(Twice.apply, _leaf(torch))


def non_differentiable(torch):
    class Parts(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            positive = x > 0
            twice = x * 2
            ctx.mark_non_differentiable(positive, twice)
            return x * 3, positive, twice

        @staticmethod
        def backward(ctx, a, b, c):
            return a * 3

    x = _leaf(torch)
    a, b, c = Parts.apply(x)
    a.sum().backward()
    return a.requires_grad, b.requires_grad, c.requires_grad, x.grad


def returning_the_input(torch):
    Same = _same(torch, 10)
    x = _leaf(torch)
    y = Same.apply(x)
    y.sum().backward()
    return y is x, y.data_ptr() == x.data_ptr(), x.grad, y.is_leaf


def returning_a_view(torch):
    class First(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x[0]

        @staticmethod
        def backward(ctx, g):
            return torch.stack([g, g * 0])

    x = torch.ones(2, 3, requires_grad=True)
    y = First.apply(x * 1)
    y.sum().backward()
    return x.grad, y._is_view()


def wrong_backward(torch):
    def make(answer):
        class Wrong(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, y):
                return x + y

            @staticmethod
            def backward(ctx, g):
                return answer(g)

        return Wrong

    x, y = _leaf(torch), _leaf(torch)
    return [
        refusal(make(answer).apply(x, y).sum().backward)
        for answer in (
            lambda g: g,
            lambda g: (g, g, g),
            lambda g: (g, 3),
            lambda g: (g, torch.ones(2)),
            lambda g: (g, g, None),
        )
    ]


def none_gradients(torch):
    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g, None

    x, y = _leaf(torch), _leaf(torch)
    Half.apply(x, y).sum().backward()
    return x.grad, y.grad


def refusals(torch):
    square, x = _square(torch), _leaf(torch)
    return refusal(square.forward), refusal(torch.autograd.Function.apply, x)


def missing_backward(torch):
    class Forward(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x + 0

    return refusal(Forward.apply(_leaf(torch)).sum().backward)


def saved_twice_and_freed(torch):
    x = _leaf(torch)
    y = _square(torch).apply(x).sum()
    y.backward()
    return refusal(y.backward)


def saved_output_and_none(torch):
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y, None)
            ctx.extra = 3
            return y

        @staticmethod
        def backward(ctx, g):
            y, nothing = ctx.saved_tensors
            assert nothing is None and ctx.extra == 3
            return g * y

    x = _leaf(torch)
    (g,) = torch.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


def saved_version(torch):
    x = _leaf(torch)
    y = x * 1
    z = _square(torch).apply(y)
    y.add_(1)
    return refusal(z.sum().backward)


def setup_context(torch):
    class Power(torch.autograd.Function):
        @staticmethod
        def forward(x, n):
            return x**n

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, n = inputs
            ctx.save_for_backward(x)
            ctx.n = n

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * ctx.n * x ** (ctx.n - 1), None

    x = _leaf(torch)
    (g,) = torch.autograd.grad(Power.apply(x, 3).sum(), x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


def once_differentiable(torch):
    from importlib import import_module

    once = import_module(torch.__name__ + ".autograd.function").once_differentiable

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    x = _leaf(torch)
    (g,) = torch.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    return g, refusal(g.sum().backward)


def tensors_in_lists_are_not_tracked(torch):
    class Total(torch.autograd.Function):
        @staticmethod
        def forward(ctx, parts, x):
            return parts[0] + x

        @staticmethod
        def backward(ctx, g):
            return None, g

    x, y = _leaf(torch), _leaf(torch)
    Total.apply([x], y).sum().backward()
    return x.grad, y.grad


def context_attributes_on_the_node(torch):
    class Keep(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.label = "kept"
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g

    return Keep.apply(_leaf(torch)).grad_fn.label


def backward_inside_backward(torch):
    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():
                x = ctx.saved_tensors[0].detach().requires_grad_()
                return torch.autograd.grad((x**3).sum(), x)[0] * g

    x = _leaf(torch)
    Nested.apply(x).sum().backward()
    return x.grad


def unrecorded_apply(torch):
    y = _square(torch).apply(torch.ones(2))
    with torch.no_grad():
        z = _square(torch).apply(_leaf(torch))
    return y.requires_grad, z.requires_grad, y.grad_fn, z


def saved_tensor_hooks(torch):
    seen = []

    def pack(x):
        seen.append(["pack", list(x.shape)])
        return x.detach().clone().mul_(2)

    def unpack(x):
        seen.append(["unpack", list(x.shape)])
        return x

    x = _leaf(torch)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = x * x
    y.sum().backward()
    return x.grad, len(seen), seen


def saved_tensor_hooks_and_functions(torch):
    seen, x = [], _leaf(torch)
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: seen.append("p") or t, lambda t: seen.append("u") or t
    ):
        y = _square(torch).apply(x)
    y.sum().backward()
    return x.grad, seen


def disabled_saved_tensor_hooks(torch):
    with torch.autograd.graph.disable_saved_tensors_hooks("not here"):
        return refusal(torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__)


def save_on_cpu(torch):
    x = _leaf(torch)
    with torch.autograd.graph.save_on_cpu():
        y = (x * x).exp()
    y.sum().backward()
    return x.grad


def checkpoint(torch):
    from importlib import import_module

    tools = import_module(torch.__name__ + ".utils.checkpoint")
    answers = []
    for reentrant in (None, True, False):
        torch.manual_seed(3)
        model = torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2)
        )
        x = torch.linspace(-1, 1, 12).view(3, 4).requires_grad_()
        y = model(x) if reentrant is None else tools.checkpoint(model, x, use_reentrant=reentrant)
        (y**2).sum().backward()
        answers.append([y, x.grad, [p.grad for p in model.parameters()], torch.rand(1)])
    return answers


def checkpoint_counts(torch):
    from importlib import import_module

    tools, calls = import_module(torch.__name__ + ".utils.checkpoint"), []

    def f(x, flag, scale=1.0):
        calls.append(torch.is_grad_enabled())
        return (x * x * scale).sin()

    x = _leaf(torch)
    tools.checkpoint(f, x, True, use_reentrant=True).sum().backward()
    first, x.grad = x.grad, None
    tools.checkpoint(f, x, True, scale=2.0, use_reentrant=False).sum().backward()
    return calls, first, x.grad, refusal(tools.checkpoint, f, x, True, scale=2.0, use_reentrant=True)


def checkpoint_nested_and_double(torch):
    from importlib import import_module

    tools = import_module(torch.__name__ + ".utils.checkpoint")
    x = _leaf(torch)

    def inner(v):
        return v.tanh() * v

    def outer(v):
        return tools.checkpoint(inner, v, use_reentrant=False).exp()

    y = tools.checkpoint(outer, x, use_reentrant=False).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return g, torch.autograd.grad(g.sum(), x)


def checkpoint_sequential(torch):
    from importlib import import_module

    tools = import_module(torch.__name__ + ".utils.checkpoint")
    torch.manual_seed(3)
    model = torch.nn.Sequential(*(torch.nn.Linear(3, 3) for _ in range(4)))
    x = _leaf(torch)
    tools.checkpoint_sequential(model, 2, x, use_reentrant=False).sum().backward()
    return x.grad, [p.grad for p in model.parameters()]


def forward_writes_to_its_argument(torch):
    """The argument is a view. The Function must use the history from before the write in forward."""

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x *= 2
            return x.sum(-1)

        @staticmethod
        def backward(ctx, g):
            return 2 * g.unsqueeze(-1).expand(*g.shape, 3)

    x = torch.arange(6.0).view(2, 3).requires_grad_()
    whole = (x * 1).view(3, 2).t()
    first, _ = (x * 3).chunk(2)
    lines = Scale.apply(first).sum() + Scale.apply((x * 1).view(2, 3)).sum()
    return whole, torch.autograd.grad(lines, x), refusal(lambda: first.grad_fn)


def a_view_made_in_forward_is_not_written_to(torch):
    class Lines(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return (x + 1).view(3, 2)

        @staticmethod
        def backward(ctx, g):
            return g.view(2, 3)

    x = torch.ones(2, 3, requires_grad=True)
    return (
        refusal(lambda: Lines.apply(x).add_(1)),
        refusal(lambda: Lines.apply(x).view(-1).add_(1)),
        torch.autograd.grad(Lines.apply(x).sum(), x),
    )
