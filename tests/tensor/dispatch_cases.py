"""`__torch_dispatch__` of subclasses and modes below the graph: gradients, what the methods see, and names of operators."""


def classes(torch):
    """Return (Boxed, Log): a class without memory that forwards operators and lists them, and a mode that lists them."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_map

    class Boxed(torch.Tensor):
        log: list = []

        @staticmethod
        def __new__(cls, inner):
            like = {"strides": inner.stride(), "dtype": inner.dtype, "device": inner.device}
            return torch.Tensor._make_wrapper_subclass(
                cls,
                inner.size(),
                storage_offset=inner.storage_offset(),
                requires_grad=inner.requires_grad,
                **like,
            )

        def __init__(self, inner):
            self.inner = inner

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            cls.log.append(str(func))
            plain = tree_map(lambda a: a.inner if isinstance(a, cls) else a, (args, kwargs or {}))
            result = func(*plain[0], **plain[1])
            return tree_map(lambda r: cls(r) if isinstance(r, torch.Tensor) else r, result)

    class Log(TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.log: list = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            needs = [a.requires_grad for a in args if isinstance(a, torch.Tensor)]
            self.log.append(
                (str(func), needs, getattr(result, "requires_grad", None), torch.is_grad_enabled())
            )
            return result

    return Boxed, Log


def _values(torch, *shape):
    count = 1
    for n in shape:
        count *= n
    return (torch.arange(count, dtype=torch.float64) / count - 0.4).reshape(shape).requires_grad_()


def gradients_of_a_chain(torch):
    """The values, the operators of both passes, and the kinds of the gradients."""
    boxed, _ = classes(torch)
    x = boxed(_values(torch, 3))
    y = boxed(_values(torch, 3))
    z = x * y + x.tanh()
    loss = (z * z).mul(y)
    forward = list(boxed.log)
    boxed.log.clear()
    torch.autograd.backward(loss, boxed(torch.ones(3, dtype=torch.float64)))
    return [
        forward,
        [n for n in boxed.log if n != "aten.detach.default"],
        type(z).__name__,
        z.requires_grad,
        z.inner.requires_grad,
        type(x.grad).__name__,
        x.grad.inner,
        y.grad.inner,
    ]


def gradients_of_layers(torch):
    boxed, _ = classes(torch)
    x, w, b = boxed(_values(torch, 3, 4)), boxed(_values(torch, 5, 4)), boxed(_values(torch, 5))
    hidden = torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b))
    loss = torch.nn.functional.layer_norm(hidden, (5,)).softmax(-1)[1:, ::2].reshape(-1).pow(3).mean()
    return [type(loss).__name__, loss.inner, *(g.inner for g in torch.autograd.grad(loss, [x, w, b]))]


def second_derivatives(torch):
    boxed, _ = classes(torch)
    x, y = boxed(_values(torch, 2, 3)), boxed(_values(torch, 3, 2))
    first = torch.autograd.grad((x @ y).sigmoid().sum(), [x, y], create_graph=True)
    second = torch.autograd.grad(first[0].pow(2).sum() + first[1].exp().sum(), [x, y])
    return [[type(g).__name__ for g in (*first, *second)], *(g.inner for g in (*first, *second))]


def gradients_that_are_reduced(torch):
    """Operands that are broadcast, or of another dtype."""
    boxed, _ = classes(torch)
    x, row = boxed(_values(torch, 2, 3)), boxed(_values(torch, 3))
    narrow = boxed(_values(torch, 1, 3).detach().float().requires_grad_())
    g = torch.autograd.grad((x * row + narrow).sum(), [x, row, narrow])
    return [[(type(one).__name__, one.dtype, tuple(one.shape)) for one in g], *(one.inner for one in g)]


def accumulated_gradients(torch):
    boxed, _ = classes(torch)
    x = boxed(_values(torch, 3))
    for _ in range(2):
        (x * x).sum().backward()
    return [type(x.grad).__name__, x.grad.inner]


def several_results(torch):
    boxed, _ = classes(torch)
    x = boxed(_values(torch, 4, 3))
    values, places = x.max(dim=0)
    parts = x.split(2)
    loss = values.sum() + (parts[1] * 2).sum() + x.unbind(0)[0].prod()
    (g,) = torch.autograd.grad(loss, x)
    return [type(values).__name__, places.inner, type(x.max(dim=0)).__name__, g.inner]


def writes_in_place(torch):
    boxed, _ = classes(torch)
    x = boxed(_values(torch, 3))
    y = x * 2
    version = y._version
    same = y.mul_(x)
    return [
        same is y,
        y._version - version,
        type(y.grad_fn).__name__,
        torch.autograd.grad(y.exp().sum(), x)[0].inner,
    ]


def a_written_operand(torch):
    boxed, _ = classes(torch)
    x = boxed(_values(torch, 3))
    y = x.exp()
    y.mul_(2)
    return torch.autograd.grad(y.sum(), x)


def hooks_get_the_class(torch):
    boxed, _ = classes(torch)
    x = boxed(_values(torch, 3))
    y = x.sin()
    seen = []
    y.register_hook(lambda g: seen.append(type(g).__name__))
    y.retain_grad()
    (y * y).sum().backward()
    return [seen, type(y.grad).__name__, y.grad.inner, x.grad.inner]


def custom_functions_keep_the_class(torch):
    boxed, _ = classes(torch)

    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x * x * 3

    x = boxed(_values(torch, 3))
    y = Cube.apply(x * 2)
    y.sum().backward()
    return [type(y).__name__, x.grad.inner]


def a_mode_is_below_the_graph(torch):
    _, log = classes(torch)
    x = _values(torch, 3)
    with log() as mode:
        y = (x * 2).exp()
        kept = y.requires_grad
        with torch.no_grad():
            y.neg()
    y.sum().backward()
    seen = [
        row for row in mode.log if row[0] != "aten.detach.default"
    ]  # PyTorch detaches the result that it saves
    return [seen, kept, type(y.grad_fn).__name__, x.grad]


def a_mode_may_replace_a_result(torch):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Double(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return result * 2 if func is torch.ops.aten.exp.default else result

    x = _values(torch, 3)
    with Double():
        y = x.exp()
    y.sum().backward()
    return [y, x.grad]


def views_and_versions_under_a_mode(torch):
    _, log = classes(torch)
    x = _values(torch, 4)
    with log():
        y = x * 1
        v = y[1:]
        v.mul_(3)
    y.sum().backward()
    return [y._version, v._base is y, y, x.grad]


def grad_mode_inside(torch):
    """What is recorded inside of a method: nothing, unless it asks for it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    seen = []

    class Asks(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            leaf = torch.ones(1, requires_grad=True)
            seen.append((torch.is_grad_enabled(), (leaf * 2).requires_grad))
            with torch.enable_grad():
                seen.append((torch.is_grad_enabled(), (leaf * 2).requires_grad))
            with torch.no_grad():
                seen.append((torch.is_grad_enabled(), (leaf * 2).requires_grad))
            with torch.overrides.enable_reentrant_dispatch():
                seen.append((torch.is_grad_enabled(), (leaf * 2).requires_grad))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Asks():
        x.neg()
    after = torch.is_grad_enabled()
    with torch.no_grad(), Asks():
        x.neg()
    return [seen, after, torch.is_grad_enabled()]


def results_of_a_plain_subclass(torch):
    """A class with memory whose method calls the one of Tensor: its results are plain tensors."""
    seen = []

    class Plain(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return super().__torch_dispatch__(func, types, args, kwargs)

    leaf = torch.Tensor._make_subclass(Plain, torch.tensor([1.0, 2.0]), True)
    y = leaf + 1
    (y * y).sum().backward()
    return [type(y).__name__, seen, type(leaf.grad).__name__, leaf.grad.tolist()]


def numbers_of_a_subclass(torch):
    boxed, _ = classes(torch)
    x = boxed(torch.tensor([2.5]))
    boxed.log.clear()
    numbers = [x.item(), float(x), bool(x)]
    refusals = []
    for ask in (x.tolist, x.numpy):
        try:
            ask()
        except RuntimeError as error:
            refusals.append(str(error).split("\n")[0])
    return [numbers, boxed.log, refusals]


def an_answer_that_is_no_tensor(torch):
    class Wrong(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return "wrong"

    return torch.Tensor._make_subclass(Wrong, torch.zeros(1)).neg()


def nobody_answers(torch):
    class Refuses(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    try:
        torch.Tensor._make_subclass(Refuses, torch.zeros(1)).neg()
    except TypeError as error:
        return str(error).split(";")[0]


def a_mode_that_declines(torch):
    """The class of the operand answers where the mode does not. The mode is active while it does."""
    from torch.utils._python_dispatch import TorchDispatchMode

    boxed, _ = classes(torch)
    seen = []

    class Declines(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), len(types)))
            return NotImplemented if types else func(*args, **(kwargs or {}))

    x = boxed(torch.ones(2))
    with Declines():
        y = x.abs()
    return [seen, y.inner]


def versions_of_what_is_detached(torch):
    boxed, _ = classes(torch)
    x = boxed(torch.ones(1))
    found = [x._version]
    x.detach().add_(2)
    found.append(x._version)
    x.data.add_(2)
    return [*found, x._version, type(x.data).__name__]


def names_of_overloads(torch):
    _, log = classes(torch)
    x, n = torch.ones(2, 3), torch.ones(2, 3, dtype=torch.int64)
    with log() as mode:
        (
            torch.sum(x),
            torch.sum(x, 0),
            torch.sum(x, dim=(0, 1)),
            x.mean(),
            x.mean(0),
            x.any(),
            x.any(0),
            x.prod(),
            x.prod(1),
        )
        (
            x.max(),
            x.max(1),
            x.eq(1),
            x.eq(x),
            x > 0,
            n & n,
            n & 1,
            x**2,
            x**x,
            2**x,
            x / 2,
            torch.div(x, 2, rounding_mode="floor"),
        )
        torch.where(x > 0, x, x), x.transpose(0, 1), x.unbind(0), x.squeeze(), x.squeeze(0), x.squeeze((0, 1))
        (
            x.masked_fill(x > 0, 1.0),
            x.fill_(2),
            torch.empty(2),
            torch.abs(x, out=torch.empty(2, 3)),
            x.to(torch.float64),
        )
        x.remainder(2), x.fmod(x), x.split(1)
    return [name for name, *_ in mode.log]


def where_a_wrapper_begins(torch):
    boxed, _ = classes(torch)
    x = boxed(torch.arange(12.0).reshape(3, 4)[1:, 2:])
    return [x.storage_offset(), x.stride(), tuple(x.shape), x.inner]


def text_of_a_wrapper(torch):
    class Named(torch.Tensor):
        @staticmethod
        def __new__(cls, inner):
            return torch.Tensor._make_wrapper_subclass(cls, inner.size(), requires_grad=inner.requires_grad)

        def __init__(self, inner):
            self.inner = inner

        def __repr__(self, *, tensor_contents=None):
            return super().__repr__(tensor_contents=f"{self.inner.tolist()}")

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    return [repr(Named(torch.ones(2))), repr(Named(torch.ones(2, requires_grad=True)))]


def active_modes(torch):
    from torch.utils import _python_dispatch as dispatch

    class Quiet(dispatch.TorchDispatchMode):
        pass

    class Machinery(dispatch.TorchDispatchMode):
        @classmethod
        def is_infra_mode(cls):
            return True

    ask = dispatch.is_in_torch_dispatch_mode
    found = [(ask(), ask(include_infra_modes=False), len(dispatch._get_current_dispatch_mode_stack()))]
    with Machinery() as outer:
        found.append((ask(), ask(include_infra_modes=False)))
        with Quiet() as inner:
            found.append((ask(), ask(include_infra_modes=False)))
            found.append(dispatch._get_current_dispatch_mode_stack() == [outer, inner])
    return found


def golden_cases() -> dict:
    return {
        f.__name__: f
        for f in globals().values()
        if callable(f) and not f.__name__.startswith("_") and f.__name__ not in ("classes", "golden_cases")
    }
