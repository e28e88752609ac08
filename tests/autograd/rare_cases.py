"""Programs that are rarely written: passes inside of passes, hooks of several threads, and what may not be differentiated."""

from __future__ import annotations

import importlib
import threading
import warnings

from tests.golden.answers import refusal


def powers_with_complex_exponents(torch):
    exponents = torch.tensor([0.3 + 0.2j, 2 - 0.5j, 0j, 1.5 + 0j], dtype=torch.complex128)
    found = []
    for base in (-1.3, 2.0, 0.0, 1 - 2j):
        for given in (
            base,
            torch.full((4,), base, dtype=torch.complex128 if base == 1 - 2j else torch.float64),
        ):
            e = exponents.clone().requires_grad_()
            y = torch.pow(given, e)
            (g,) = torch.autograd.grad(y, e, torch.ones_like(y))
            found.append([y.detach(), g])
    return found


def zeros_in_place_of_gradients(torch):
    x, a = (torch.tensor(v, requires_grad=True) for v in (0.5, 1.0))
    grad, found = torch.autograd.grad, []
    first = grad(x * a, x, create_graph=True)
    for create_graph in (True, False):
        second = grad(
            first, x, create_graph=create_graph, retain_graph=True, allow_unused=True, materialize_grads=True
        )
        found.append([second[0].item(), second[0].requires_grad])
    second = grad(first, x, create_graph=True, allow_unused=True, materialize_grads=True)
    return [*found, grad(second, x, materialize_grads=True)]


def unique_elements_have_no_derivative(torch):
    x = torch.tensor([3.0, 1.0, 3.0], requires_grad=True)
    results = (
        torch.unique(x),
        torch.unique(x, dim=0),
        torch.unique_consecutive(x),
        *torch.unique(x, return_counts=True),
    )
    return [
        [y.requires_grad, refusal(lambda y=y: y.sum().backward())] for y in results if y.is_floating_point()
    ]


def products_with_several_zeros(torch):
    found = []
    for zeros in ([0.0, 0.0], [0.0, 2.0], [3.0, 2.0]):
        for function in (torch.scatter_reduce, torch.index_reduce):
            x = torch.tensor([1.5], dtype=torch.float64, requires_grad=True)
            source = torch.tensor(zeros, dtype=torch.float64, requires_grad=True)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                y = function(x, 0, torch.tensor([0, 0]), source, "prod")
            (g,) = torch.autograd.grad(y, source, create_graph=True)
            found.append([g.detach(), refusal(lambda g=g, s=source: torch.autograd.grad(g.sum(), s)[0])])
    return found


def _nested(torch, innermost):
    """A Function whose backward runs a pass for the number below, down to `innermost(gradient)`."""

    class Nested(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                ctx.rest = x.detach().requires_grad_() - 1
            return ctx.rest.detach()

        @staticmethod
        def backward(ctx, g):
            if ctx.rest < 0:
                return innermost(g)
            with torch.enable_grad():
                Nested.apply(ctx.rest).sum().backward()
            return g

    return Nested


def passes_nested_deeply(torch):
    x = torch.tensor(400.0, requires_grad=True)
    _nested(torch, lambda g: g).apply(x).sum().backward()
    return x.grad


def errors_of_nested_passes(torch):
    def fails(g):
        raise ValueError("the innermost pass fails")

    Nested = _nested(torch, fails)
    x = torch.tensor(150.0, requires_grad=True)
    return refusal(lambda: Nested.apply(x).sum().backward())


def hooks_of_several_tensors_in_several_threads(torch):
    found = []
    for mode in ("all", "any"):
        a, b, c = (torch.ones(2, requires_grad=True) for _ in range(3))
        seen = []
        torch.autograd.graph.register_multi_grad_hook(
            (a, b, c),
            lambda g, seen=seen: seen.append(
                g is not None if torch.is_tensor(g) else [x is not None for x in g]
            ),
            mode=mode,
        )
        y = (a * b).sum()
        threads = [
            threading.Thread(target=lambda y=y, a=a, b=b: y.backward(inputs=(a, b), retain_graph=True))
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found.append(seen)
    return found


def written_operands_among_several_outputs(torch):
    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.mark_dirty(a)
            return a.add_(b), b + 2

        @staticmethod
        def backward(ctx, ga, gb):
            return ga, ga + gb

    view, y = torch.arange(6.0).reshape(2, 3), torch.ones(2, 3, requires_grad=True)
    refused, x = refusal(lambda: Both.apply(view, y)), torch.arange(6.0).reshape(2, 3).clone()
    q, p = Both.apply(x, y)
    (q.sum() + 2 * p.sum()).backward()
    return [refused, q is x, q.requires_grad, q.detach(), p.detach(), y.grad]


def results_wrongly_marked_as_written(torch):
    class Marked(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Marked.apply(x).sum().backward()
    return [x.grad, [str(w.message).split(".")[0] for w in caught]]


def cycles_of_hooks_and_their_nodes(torch):
    import gc
    import weakref

    class Witness:
        pass

    found = []
    for custom in (False, True):
        for on_node in (False, True):

            class Same(torch.autograd.Function):
                @staticmethod
                def forward(ctx, x):
                    return x * 1

                @staticmethod
                def backward(ctx, g):
                    return g

            def scope(custom=custom, on_node=on_node, Same=Same):
                a = torch.tensor(1.0, requires_grad=True)
                b = Same.apply(a) if custom else a.clone()
                node, witness = b.grad_fn, Witness()

                def hook(*_):
                    assert node is not None and witness is not None

                (node if on_node else b).register_hook(hook)
                return b.clone(), weakref.ref(witness)

            out, reference = scope()
            out.backward(retain_graph=True)
            gc.collect()
            alive = reference() is not None
            del out
            gc.collect()
            found.append([alive, reference() is None])
    return found


def tensors_saved_for_forward(torch):
    seen = []

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, kept):
            ctx.save_for_backward(x, y)
            if kept:
                ctx.save_for_forward(x * 2, y)
            return x * y

        @staticmethod
        def jvp(ctx, x_t, y_t, _):
            seen.append([t.detach() for t in ctx.saved_tensors])
            return x_t * 3

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x, None

    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        for kept in (True, False):
            x = forward_ad.make_dual(torch.tensor(2.0), torch.tensor(1.0))
            seen.append(forward_ad.unpack_dual(Product.apply(x, torch.tensor(5.0), kept)).tangent.detach())
    return seen


def resized_by_a_function(torch):
    resize = importlib.import_module(f"{torch.__name__}.autograd._functions").Resize
    x = torch.arange(6.0).reshape(2, 3).requires_grad_()
    y = resize.apply(x.t(), (6,))
    y.backward(torch.arange(6.0))
    return [y.detach(), x.grad, refusal(resize.apply, x, (4,))[0]]


def node_class_of_a_function(torch):
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = Doubled.apply(torch.ones(2, requires_grad=True))
    return [type(y.grad_fn) is Doubled._backward_cls, Doubled._backward_cls.__name__]


def order_of_a_pass_with_threads(torch):
    found = [refusal(torch._C._current_graph_task_execution_order)]
    x = torch.ones(2, requires_grad=True).sin()
    x.register_hook(lambda g: found.append(refusal(torch._C._current_graph_task_execution_order)[:2]))
    with torch.autograd.set_multithreading_enabled(True):
        x.sum().backward(retain_graph=True)
    return found


def attributes_that_dir_names_are_there(torch):
    x = torch.ones(2, 2)
    names = [name for name in dir(x) if name != "imag"]
    return [name for name in names if not hasattr(x, name)]


def bags_with_the_weight_first(torch):
    weight = torch.arange(30.0).reshape(10, 3).requires_grad_()
    ids, offsets = torch.tensor([1, 2, 4]), torch.tensor([0, 2])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bags = torch.nn.functional.embedding_bag(weight, ids, offsets, mode="sum", sparse=True)
    bags.sum().backward()
    return [
        bags.detach(),
        weight.grad.to_dense(),
        [str(w.message) for w in caught if w.category is UserWarning],
    ]


def functions_that_write_views(torch):
    """A view that forward writes has the Function as its history, and so does its base."""

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, count):
            ctx.mark_dirty(x)
            x.mul_(2)
            whole = torch.ones(2, dtype=torch.int64)
            ctx.mark_non_differentiable(whole)
            return {1: x, 2: (x, whole), 3: (x, x * 1)}[count]

        @staticmethod
        def backward(ctx, g, *others):
            return g * 2, None

    found = []
    for count in (1, 2, 3):
        leaf = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        base = leaf * 3
        try:
            out = Doubled.apply(base[0], count)
        except RuntimeError as error:
            found.append(str(error)[:60])
            continue
        first = out[0] if isinstance(out, tuple) else out
        found += [base.detach(), type(base.grad_fn).__name__, type(first.grad_fn).__name__]
        found += torch.autograd.grad((base * base).sum(), (leaf,))
    return found


def gradients_of_results_without_derivatives(torch):
    found = []
    for materialize in (True, False):

        class Two(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, materialize=materialize):
                ctx._materialize_non_diff_grads = materialize
                places = x.argsort()
                ctx.mark_non_differentiable(places)
                return x * 2, places, x * 3

            @staticmethod
            def backward(ctx, g, of_places, h, found=found):
                found.append([g, of_places, h])
                return g * 2 + h * 3

        x = torch.tensor([3.0, 1.0], requires_grad=True)
        a, _, b = Two.apply(x)
        found += [*torch.autograd.grad(a.sum(), (x,), retain_graph=True), *torch.autograd.grad(b.sum(), (x,))]
    return found


def keywords_of_apply(torch):
    class Plain(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale=2):
            ctx.scale = scale
            return x * scale

        @staticmethod
        def backward(ctx, g):
            return g * ctx.scale, None

    class Separate(torch.autograd.Function):
        @staticmethod
        def forward(x, scale=2):
            return x * scale

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.scale = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.scale, None

    x = torch.ones(2, requires_grad=True)

    class Several(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b=None, c=None, *, key=None):
            ctx.count = len(ctx.needs_input_grad)
            return sum(factor * t for factor, t in ((2, a), (3, b), (4, c)) if t is not None)

        @staticmethod
        def backward(ctx, g):
            return tuple((k + 1) * g for k in range(ctx.count))

    found = [Plain.apply(x, 3).detach(), Plain.apply(x, scale=5).detach()]
    y, z = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    for args, kwargs in (
        ((x,), {"b": y}), ((x,), {"c": z, "b": y}), ((), {"b": y, "a": x}), ((), {"a": x}), ((x, y), {"c": z}),
        ((x,), {"c": z}), ((), {"c": z}), ((x,), {"key": 5}), ((x,), {"ctx": 3}), ((x,), {"a": y}), ((x, y), {"b": y}),
    ):  # fmt: skip
        try:
            out = Several.apply(*args, **kwargs)
        except TypeError as error:
            found.append(str(error))
            continue
        found += [out.detach(), *torch.autograd.grad(out.sum(), (x, y, z), allow_unused=True)]
    for call in (lambda: Separate.apply(x), lambda: Separate.apply(x, 5)):
        y = call()
        found += [y.detach(), *torch.autograd.grad(y.sum(), (x,))]
    return found


def sparse_tensors_that_a_function_saves(torch):
    """Saved sparse tensors are sparse in the backward, with and without leaves beside them."""

    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, extra):
            s = (x * 2).to_sparse()
            ctx.save_for_backward(s, *extra)
            return x * 3

        @staticmethod
        def backward(ctx, g):
            s, *extra = ctx.saved_tensors
            found.append([str(s.layout), s.to_dense(), [e is w for e in extra]])
            return g * 3 + s.to_dense(), None

    found = []
    w = torch.ones(1, requires_grad=True)
    for extra in ((), (w,)):
        x = torch.tensor([0.0, 2.0], requires_grad=True)
        found += torch.autograd.grad(Keeps.apply(x, extra).sum(), (x,))
    return found


def what_jvp_and_backward_read(torch):
    """jvp reads what save_for_forward was given, and a later backward what save_for_backward was given."""
    f = torch.autograd.forward_ad

    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x * 5)
            ctx.save_for_backward(x * 7)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, t):
            return t * ctx.saved_tensors[0]

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with f.dual_level():
        y = Both.apply(f.make_dual(x, torch.ones(2)))
        tangent = f.unpack_dual(y).tangent
    return [tangent.detach(), *torch.autograd.grad(y.sum(), (x,))]


def outputs_with_a_history_of_their_own(torch):
    """What forward makes with gradients is the result itself, with the Function as its history."""
    kept = []

    class Made(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, kind):
            with torch.enable_grad():
                y = torch.ones(2, requires_grad=True)
                y = {"leaf": y, "result": y * 2, "parameter": torch.nn.Parameter(y.detach())}[kind]
            kept.append(y)
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            found.append([ctx.saved_tensors[0].detach(), ctx.saved_tensors[0].requires_grad])
            return g * 2, None

    found = []
    for kind in ("leaf", "result", "parameter"):
        x = torch.ones(2, requires_grad=True)
        out = Made.apply(x, kind)
        found.append(
            [out is kept[-1], out.is_leaf, out.requires_grad, type(out.grad_fn).__name__, type(out).__name__]
        )
        found += torch.autograd.grad(out.sum(), (x,))
    return found


def gradients_from_which_a_pass_starts(torch):
    """One for each output, and None for an output without a graph, which is then refused by its place."""
    fixed, x = torch.ones(1), torch.tensor([2.0], requires_grad=True)
    y, edge = x * 3, torch.autograd.graph.get_gradient_edge(x * 5)
    outputs, grads = (fixed, y, fixed, edge), (None, None, torch.ones(1), None)
    made = torch.autograd._make_grads(outputs, grads, is_grads_batched=False)
    return [
        list(made),
        refusal(torch.autograd.backward, [y, fixed]),
        refusal(torch.autograd.backward, [fixed, y]),
        refusal(torch.autograd.grad, [y, fixed], x),
        refusal(torch.autograd._make_grads, (y,), (3.0,), is_grads_batched=False),
    ]
