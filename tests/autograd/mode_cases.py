"""Modes, hooks, edges and refusals of autograd that the other cases of this folder leave out."""

from __future__ import annotations

import threading
import warnings
from importlib import import_module

from tests.golden.answers import refusal


def _leaf(torch, *values):
    return torch.tensor(values or (1.0, 2.0), requires_grad=True)


def _modes(torch):
    return [torch.is_grad_enabled(), torch.is_inference_mode_enabled()]


def modes_as_decorators(torch):
    found = []
    for make in (torch.no_grad, torch.enable_grad, torch.inference_mode):
        for apply in (lambda m, f: m()(f), lambda m, f: m(f)):
            for outside in (True, False):

                def body(a, b=2):
                    return [a, b, _modes(torch)]

                wrapped = apply(make, body)
                with torch.set_grad_enabled(outside):
                    found.append([wrapped(1, b=3), _modes(torch), wrapped.__name__])
                    found.append(refusal(apply(make, lambda: 1 / 0))[0])
                    found.append(_modes(torch))
    return found


def set_grad_enabled_in_every_form(torch):
    found = []
    for mode in (True, False):
        with torch.set_grad_enabled(mode):
            inner = _modes(torch)
        found.append([inner, _modes(torch)])

        @torch.set_grad_enabled(mode)
        def body():
            return _modes(torch)

        found.append([_modes(torch), body(), _modes(torch)])
        guard = torch.set_grad_enabled(mode)
        found.append(_modes(torch))
        with guard:
            found.append(_modes(torch))
        found.append(_modes(torch))
        torch.set_grad_enabled(True)
    return found


def generators_keep_their_mode(torch):
    @torch.no_grad()
    def numbers(log):
        try:
            got = yield torch.is_grad_enabled()
            log.append([got, torch.is_grad_enabled()])
            try:
                yield torch.is_grad_enabled()
            except KeyError:
                log.append(["caught", torch.is_grad_enabled()])
                yield "after"
            yield "end"
        finally:
            log.append(["closed", torch.is_grad_enabled()])
        return "result"

    log: list = []
    steps = numbers(log)
    found = [
        next(steps),
        torch.is_grad_enabled(),
        steps.send(7),
        steps.throw(KeyError()),
        torch.is_grad_enabled(),
    ]
    steps.close()
    found.append(torch.is_grad_enabled())

    def outer(log):
        result = yield from numbers(log)
        log.append(result)

    found.append(list(outer(log)))
    return [found, log]


def inference_mode_nested(torch):
    found = []
    with torch.inference_mode():
        found.append(_modes(torch))
        with torch.inference_mode(False):
            found.append(torch.is_grad_enabled())
        with torch.enable_grad():
            found.append(torch.is_inference_mode_enabled())
        with torch.inference_mode(True):
            found.append(_modes(torch))
        found.append(_modes(torch))
    found.append(_modes(torch))
    with torch.inference_mode(False):
        found.append(_modes(torch))
    return found


def multithreading_is_accepted(torch):
    A = torch.autograd
    mode = A.set_multithreading_enabled(False)
    with torch.no_grad(), A.set_multithreading_enabled(True):
        inside = [torch.is_grad_enabled(), A.is_multithreading_enabled()]
    after = A.is_multithreading_enabled()
    with mode:
        within = [torch.is_grad_enabled(), A.is_multithreading_enabled()]
    return inside, after, within, A.is_multithreading_enabled()


def settings_of_a_new_thread(torch):
    """A thread starts with the defaults, whatever the one that starts it has set; detection belongs to all threads."""
    A, found = torch.autograd, []

    def state():
        found.append(
            [
                torch.is_grad_enabled(),
                A.is_multithreading_enabled(),
                torch.is_inference_mode_enabled(),
                A.forward_ad._is_fwd_grad_enabled(),
                torch.is_anomaly_enabled(),
                torch.is_anomaly_check_nan_enabled(),
            ]
        )

    state()
    with (
        torch.inference_mode(),
        A.set_multithreading_enabled(False),
        A.forward_ad._set_fwd_grad_enabled(False),
    ):
        thread = threading.Thread(target=state)
        thread.start()
        thread.join()
        state()
    state()
    return found


def gradients_that_are_given(torch):
    x = _leaf(torch)
    z = torch.tensor([1 + 1j], requires_grad=True) * 2
    A = torch.autograd
    return [
        refusal((x * 3).backward, torch.ones(3)),
        refusal((x * 3).backward, torch.ones(2, dtype=torch.complex64))[0],
        refusal(z.backward),
        refusal(z.backward, torch.ones(1))[0],
        refusal((x * 3).backward, 3.0)[0],
        refusal(A.backward, [x * 3, x * 3], [torch.ones(2)])[0],
        refusal(A.backward, [x.detach()], [torch.ones(2)]),
        refusal(A.backward, [(x * 3).sum(), x.detach().sum()])[0],
        refusal(A.backward, (x * 3).sum(), inputs=[]),
        refusal(A.grad, (x * 3).sum(), []),
        refusal(A.grad, [x.detach().sum()], [x]),
        refusal(A.grad, (x * 3).sum(), [x], materialize_grads=True, allow_unused=False)[0],
        refusal(A.grad, x * 3, [x]),
        A.grad([x * 6, (x * 3).sum()], [x], [torch.ones(2), None]),
        A.grad(x * 3, x, torch.ones(2, dtype=torch.float32)),
    ]


def graphs_that_are_kept(torch):
    found = []
    for options in (
        {},
        {"retain_graph": True},
        {"create_graph": True},
        {"create_graph": True, "retain_graph": False},
    ):
        x = _leaf(torch)
        y = (x**3).sum()
        (g,) = torch.autograd.grad(y, x, **options)
        found.append([g, g.requires_grad, refusal(torch.autograd.grad, y, x)[0]])
        x.grad = None
        y = (x**3).sum()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            y.backward(**options)
        found.append([x.grad, x.grad.requires_grad, refusal(y.backward)[0]])
    return found


def unused_inputs(torch):
    x, unused = _leaf(torch), _leaf(torch, 5.0)
    A = torch.autograd
    found = [
        refusal(A.grad, (x * 2).sum(), [x, unused])[0],
        A.grad((x * 2).sum(), [x, unused], allow_unused=True),
        A.grad((x * 2).sum(), [x, unused], materialize_grads=True),
        A.grad((x * 2).sum(), [x, unused], materialize_grads=True, allow_unused=True),
    ]
    (x * 2).sum().backward(inputs=[x])
    (x * 2).sum().backward(inputs=x)
    return [*found, x.grad, unused.grad]


def batched_gradients(torch):
    x, unused = _leaf(torch), _leaf(torch, 5.0)
    y = x**2
    rows = torch.eye(2)
    A = torch.autograd
    found = [
        A.grad(y, x, rows, is_grads_batched=True, retain_graph=True),
        A.grad([y, y.sum()], [x], [rows, torch.ones(2)], is_grads_batched=True, retain_graph=True),
        A.grad(y, [x, unused], rows, is_grads_batched=True, retain_graph=True, allow_unused=True),
        A.grad(y, [x, unused], rows, is_grads_batched=True, retain_graph=True, materialize_grads=True),
    ]
    (g,) = A.grad(y, x, rows, is_grads_batched=True, create_graph=True)
    found.append(A.grad(g.sum(), x, retain_graph=True))
    A.grad(y, x, rows, is_grads_batched=True, retain_graph=False)
    return [*found, refusal(A.grad, y, x, rows, is_grads_batched=True)[0]]


def hooks_in_both_modes(torch):
    found = []
    for mode in ("all", "any"):
        a, b = _leaf(torch), _leaf(torch)
        seen = []
        handle = torch.autograd.graph.register_multi_grad_hook(
            (a, b), lambda g, seen=seen: seen.append(g), mode=mode
        )
        (a * 2 + b * 3).sum().backward()
        found.append(len(seen))
        (a * 5).sum().backward()
        found.append([len(seen), seen[-1]])
        (a * 2 + b * 3).sum().backward()
        found.append(len(seen))
        handle.remove()
        (a * 2 + b * 3).sum().backward()
        found.append([len(seen), seen[0]])
    return found


def edges(torch):
    x = _leaf(torch)
    y = torch.stack([x * 2, x * 3]).unbind(0)[1]
    space = torch.autograd.graph
    edge = space.get_gradient_edge(y)
    return [
        edge.node.name(),
        edge.output_nr,
        tuple(edge)[1],
        edge.node is y.grad_fn,
        refusal(space.get_gradient_edge, torch.ones(1))[0],
    ]


def versions_raised_by_hand(torch):
    x, y = torch.ones(2), torch.ones(2)
    torch.autograd.graph.increment_version(x)
    torch.autograd.graph.increment_version([x, y])
    return [x._version, y._version]


def hooks_that_are_refused_and_return(torch):
    space = torch.autograd.graph
    refused = refusal(space.disable_saved_tensors_hooks("not here").__enter__)
    found = [refused]
    kept = []
    with space.disable_saved_tensors_hooks("outer"):
        with space.disable_saved_tensors_hooks("inner"):
            found.append(refusal(space.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__))
        found.append(refusal(space.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__))
    with space.saved_tensors_hooks(lambda t: kept.append(1) or t, lambda t: t * 2):
        x = _leaf(torch)
        y = x.exp()
    z = x.exp()
    y.sum().backward()
    first = x.grad.clone()
    z.sum().backward()
    return [*found, len(kept) > 0, first, x.grad]


def hooks_of_saved_tensors_are_refused_within_such_hooks(torch):
    space, found = torch.autograd.graph, []
    with space.saved_tensors_hooks(lambda t: t, lambda t: t):
        found.append(refusal(space.disable_saved_tensors_hooks("not here").__enter__))
    with space.disable_saved_tensors_hooks("once"):
        found.append(refusal(space.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__))
    with space.saved_tensors_hooks(lambda t: t, lambda t: t):
        found.append("again")
    return found


def saved_tensors_where_nothing_is_recorded(torch):
    """A context keeps what it saves only for a backward."""
    contexts = []

    class Kept(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            contexts.append(ctx)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    found, outputs = [], []
    for required in (False, True):
        for enabled in (False, True):
            with torch.set_grad_enabled(enabled):
                outputs.append(Kept.apply(torch.ones(2, requires_grad=required)))
            found.append([contexts[-1].saved_tensors, contexts[-1].needs_input_grad])
    return found


def hooks_on_what_has_no_gradient(torch):
    x, y = torch.ones(2), _leaf(torch) * 2
    return [
        refusal(x.register_hook, print),
        refusal(x.register_post_accumulate_grad_hook, print),
        refusal(y.register_post_accumulate_grad_hook, print),
        refusal(x.retain_grad),
        y.retains_grad,
        y.retain_grad(),
        y.retain_grad(),
        y.retains_grad,
        _leaf(torch).retain_grad(),
        _leaf(torch).retains_grad,
        x.retains_grad,
    ]


def retained_gradients_add_up(torch):
    x = _leaf(torch)
    y = x * 2
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    first = y.grad.clone()
    (y * 3).sum().backward()
    return [first, y.grad, x.grad]


def handles_as_blocks(torch):
    x = _leaf(torch)
    seen = []
    with x.register_hook(lambda g: seen.append(1)) as handle:
        (x * 2).sum().backward()
        inside = len(seen)
    (x * 2).sum().backward()
    handle.remove()
    return [inside, len(seen), type(handle).__name__]


def attributes_of_nodes(torch):
    node = (_leaf(torch) * 2).grad_fn
    return [refusal(lambda: node.something)[0], hasattr(node, "saved_tensors"), node.name() in repr(node)]


def detection_on_and_off(torch):
    A = torch.autograd
    found = []

    def state():
        return [torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for check in (True, False):
            with A.detect_anomaly(check_nan=check):
                inside = state()
                with A.set_detect_anomaly(False, True):
                    inner = state()
                after = state()
            found.append([inside, inner, after, state()])
        with A.set_detect_anomaly(True, False):
            found.append(state())
            with A.detect_anomaly():
                found.append(state())
            found.append(state())
        found.append(state())
        A.set_detect_anomaly(True)
        found.append(state())
        A.set_detect_anomaly(True, False)
        found.append(state())
        A.set_detect_anomaly(False)
        found.append(state())
        torch.set_anomaly_enabled(True, False)
        found.append(state())
        torch.set_anomaly_enabled(False)
        found.append(state())
    return found


def detection_names_the_operation(torch):
    found = []
    for function in (
        lambda x: (torch.sqrt(x * 0) * 0).sum(),
        lambda x: ((x * 0).log() * 0).sum(),
        lambda x: (x * 2).sum(),
    ):
        x = _leaf(torch)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with torch.autograd.detect_anomaly():
                y = function(x)
                error = refusal(y.backward)
        texts = [str(w.message).split(". ")[0] for w in caught]
        found.append([error, texts[:2], refusal(function(_leaf(torch)).backward)])
    return found


def once_differentiable_results(torch):
    once = import_module(torch.__name__ + ".autograd.function").once_differentiable
    found = []

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        @once
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y * (1 if torch.is_grad_enabled() else 10), None

    class One(Two):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        @once
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    for apply in (lambda x: Two.apply(x, torch.ones(2)), One.apply):
        for create in (False, True):
            x = _leaf(torch)
            (g,) = torch.autograd.grad(apply(x).sum(), x, create_graph=create)
            found.append([g, g.requires_grad])
            y = apply(x)
            seed = torch.ones(2, requires_grad=True)
            (g,) = torch.autograd.grad(y, x, seed, create_graph=create)
            found.append([g.requires_grad, refusal(g.sum().backward) if create else None])
    return found


def functions_that_return_too_much(torch):
    found = []
    for result in ((1, None, None), (1, None), (1,), (1, 2), (1, None, 2), "text", (None,)):

        class Custom(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, flag=None):
                return x * 1

            @staticmethod
            def backward(ctx, g, result=result):
                given = result if isinstance(result, tuple) else (result,)
                return tuple(g * r if isinstance(r, int) else r for r in given)

        x = _leaf(torch)
        found.append([refusal(lambda c=Custom, x=x: c.apply(x, 3).sum().backward()), x.grad])
    return found


def dual_levels(torch):
    fw = torch.autograd.forward_ad
    x, v = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 5.0])
    found = [refusal(fw.make_dual, x, v)[0], refusal(fw.exit_dual_level)[0]]
    with fw.dual_level():
        found.append(refusal(fw.enter_dual_level)[0])
        found.append(refusal(fw.make_dual, x, torch.ones(3))[0])
        found.append(refusal(fw.make_dual, torch.ones(2, dtype=torch.long), torch.ones(2, dtype=torch.long)))
        found.append(refusal(fw.make_dual, x, torch.ones(2, dtype=torch.long)))
        dual = fw.make_dual(x, v)
        plain = fw.unpack_dual(x)
        found.append([plain.primal, plain.tangent])
        for y in (dual, dual * x, dual.sin() * dual, (dual * 2).sum(), dual.detach() * 2, torch.ones(2)):
            primal, tangent = fw.unpack_dual(y)
            found.append([primal.detach(), None if tangent is None else tangent.detach()])
    after = fw.unpack_dual(x)
    return [*found, after.primal, after.tangent]


def two_dual_tensors(torch):
    fw = torch.autograd.forward_ad
    a, b = torch.tensor([1.0, 2.0]), torch.tensor([4.0, 0.5], requires_grad=True)
    with fw.dual_level():
        p, q = fw.make_dual(a, torch.tensor([1.0, 0.0])), fw.make_dual(b, torch.tensor([0.5, 2.0]))
        y = p * q + q**2
        tangent = fw.unpack_dual(y).tangent
        only = fw.unpack_dual(q * 3).tangent
        (g,) = torch.autograd.grad(tangent.sum(), b)
    return [tangent.detach(), only.detach(), g]


def tangents_of_which_some_require_a_gradient(torch):
    """The tangent of a result has a graph as soon as one dual tensor's tangent or primal has one."""
    fw = torch.autograd.forward_ad
    found = []
    for recorded in range(16):
        a, b, v, w = (
            torch.tensor([1.0 + k, 2.0 - k], requires_grad=bool(recorded >> k & 1)) for k in range(4)
        )
        with fw.dual_level():
            p, q = fw.make_dual(a, v), fw.make_dual(b, w)
            for y in (p * 3 + q, p * q, p * 5):
                tangent = fw.unpack_dual(y).tangent
                found.append(tangent.detach().clone())
                leaves = [x for x in (a, b, v, w) if x.requires_grad]
                if tangent.requires_grad:
                    grads = torch.autograd.grad(tangent.sum(), leaves, allow_unused=True)
                else:
                    grads = [None] * len(leaves)
                # whether a gradient of zeros is None differs
                found.append([torch.zeros(2) if g is None else g + 0 for g in grads])
    return found


def checkpoints_outside_autocast(torch):
    """Recomputing uses the autocast state of the forward, whatever the state around backward is."""
    from_module = import_module(torch.__name__ + ".utils.checkpoint").checkpoint
    found = []
    for reentrant in (False, True):
        for forward_on in (True, False):
            for backward_on in (True, False):
                seen = []
                x = torch.linspace(-1, 1, 6).reshape(2, 3).requires_grad_()
                w = torch.linspace(0, 1, 9).reshape(3, 3).requires_grad_()

                def body(x, w, seen=seen):
                    y = x @ w
                    seen.append([str(y.dtype), torch.is_autocast_enabled("cpu")])
                    return (y.float() ** 2).sum()

                with torch.autocast("cpu", torch.bfloat16, enabled=forward_on):
                    y = from_module(body, x, w, use_reentrant=reentrant)
                with torch.autocast("cpu", torch.bfloat16, enabled=backward_on):
                    y.backward()
                found.append([seen, [round(v, 2) for v in w.grad.flatten().tolist()]])
    return found


def hessians_with_every_option(torch):
    found = []
    for strategy in ("reverse-mode", "forward-mode", "other"):
        for vectorize in (False, True):
            for strict in (False, True):
                options = {"outer_jacobian_strategy": strategy, "vectorize": vectorize, "strict": strict}

                def value(options=options):
                    x = _leaf(torch)
                    return torch.autograd.functional.hessian(lambda v: (v**3).sum(), x, **options)

                error = refusal(value)[0]
                found.append([error, value().tolist() if error == "nothing raised" else None])
    return found


def jacobians_with_every_option(torch):
    found = []
    for strategy in ("reverse-mode", "forward-mode", "other"):
        for vectorize in (False, True):
            for strict in (False, True):
                for create in (False, True):
                    options = {
                        "strategy": strategy,
                        "vectorize": vectorize,
                        "strict": strict,
                        "create_graph": create,
                    }

                    def value(options=options):
                        x = _leaf(torch)
                        return torch.autograd.functional.jacobian(lambda v: v**3, x, **options)

                    error = refusal(value)[0]
                    made = value() if error == "nothing raised" else None
                    # PyTorch's forward mode keeps the graph of the input, asked for or not.
                    graph = made is not None and strategy == "reverse-mode" and made.requires_grad
                    found.append([error, None if made is None else made.tolist(), graph])
    return found


def products_with_and_without_graphs(torch):
    F = torch.autograd.functional
    found = []
    for name in ("vjp", "jvp", "vhp", "hvp"):
        for create in (False, True):
            for strict in (False, True):
                x, v = _leaf(torch), torch.tensor([0.5, -1.0], requires_grad=True)

                def function(u, name=name):
                    return (u**3).sum() if name[1] == "h" or name == "hvp" else u**3

                outputs, product = getattr(F, name)(function, x, v, create_graph=create, strict=strict)
                found.append([outputs, product, outputs.requires_grad, product.requires_grad])
                if create:
                    found.append(torch.autograd.grad(product.sum(), [x, v], allow_unused=True))
    for name in ("vjp", "jvp", "vhp", "hvp"):
        function = getattr(F, name)
        scalar = name in ("vhp", "hvp")
        f = (lambda u: (u**2).sum()) if scalar else (lambda u: u * 2)
        x = torch.ones(2)
        found.append(refusal(function, f, x))
        found.append(refusal(function, f, x, torch.ones(3)))
        found.append(refusal(function, f, x, (torch.ones(2), torch.ones(2))))
        found.append(refusal(function, f, (x, x), torch.ones(2))[0])
        found.append(refusal(function, lambda u: 3, x, x))
        found.append(refusal(function, lambda u: u.detach().sum(), x, x, strict=True)[0])
        found.append(refusal(function, lambda u: u.sum(), torch.ones(1)))
        found.append(refusal(function, f, 3))
    return found
