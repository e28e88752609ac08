"""Inference tensors, saved values of nodes, edges, re-runs of checkpoints, and writes to saved tensors."""

from __future__ import annotations

import gc
import warnings
import weakref
from importlib import import_module

from tests.golden.answers import refusal


def _leaf(torch, *values):
    return torch.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def views_know_the_object_of_their_base(torch):
    x = torch.arange(12.0).reshape(3, 4).clone()
    views = [
        x.t(),
        x[0],
        x[1:, 2],
        x.view(-1),
        x.reshape(12),
        x.unsqueeze(0)[0][1],
        x.split(1)[2],
        x.narrow(0, 1, 2),
    ]
    views += [
        x.detach(),
        x.expand(2, 3, 4),
        x.flatten(),
        x.T,
        x.chunk(2)[1],
        x.unbind()[0],
        x.diagonal(),
        x.mT,
    ]
    own = torch.nn.Parameter(torch.ones(2, 2))
    return [v._base is x for v in views], own.t()._base is own, x._base


def a_base_lives_as_long_as_its_view(torch):
    x = torch.ones(2, 3)
    view = x.t()[0]
    reference = weakref.ref(x)
    kept = view._base
    del x
    gc.collect()
    return reference() is kept, view._base is kept, view._base.shape


def what_inference_mode_makes(torch):
    normal = _leaf(torch).clone()
    plain = torch.ones(3)
    with torch.inference_mode():
        made = [
            torch.ones(2),
            torch.tensor([1.0]),
            torch.rand(2),
            torch.empty(3),
            torch.arange(3),
            normal * 2,
        ]
        made += [
            torch.tensor([1, 2]),
            torch.zeros(2, requires_grad=True),
            plain + plain,
            plain.clone(),
            plain.sum(),
        ]
        views = [normal.view(3, 1), plain[1:], made[0].view(2, 1), made[5][0]]
        plain.add_(1)
        with torch.inference_mode(False):
            made.append(torch.ones(2))
    after = [made[0].view(-1), made[0] + 1, made[0].clone(), plain.t()]
    return (
        [[t.is_inference(), t.requires_grad, t.is_leaf] for t in made],
        [[t.is_inference(), t.requires_grad, t._is_view()] for t in views],
        [t.is_inference() for t in after],
        [torch.is_inference(plain), plain._version],
    )


def what_inference_tensors_refuse(torch):
    with torch.inference_mode():
        x = torch.ones(3)
        x.add_(1)
    leaf = _leaf(torch)
    with torch.no_grad():
        unrecorded = x * leaf
    return (
        refusal(lambda: x.add_(1)),
        refusal(lambda: x.t_()),
        refusal(lambda: x.zero_()),
        refusal(lambda: x._version),
        refusal(lambda: x.requires_grad_()),
        refusal(lambda: x * leaf),
        refusal(lambda: torch.mul(leaf.detach(), 2, out=x)),
        (x + leaf).requires_grad,
        unrecorded.is_inference(),
    )


def views_made_in_inference_mode_are_not_written(torch):
    base = _leaf(torch).clone()
    with torch.inference_mode():
        view = base.view(3, 1)
    direct = refusal(lambda: view.add_(1))
    base.add_(1)
    return direct, refusal(lambda: view.grad_fn), view.requires_grad


def saved_values_of_nodes(torch):
    a, b = _leaf(torch), _leaf(torch, 4.0, 5.0, 6.0)
    product, result = (a * b).grad_fn, a.exp().grad_fn
    power, total = (a**3).grad_fn, a.reshape(3, 1).sum(0, keepdim=True).grad_fn
    found = [product._saved_self, product._saved_other, result._saved_result, power._saved_exponent]
    found += [total._saved_keepdim, type(product._raw_saved_self).__name__]
    (a * b).sum().backward()
    c = (a * b).exp()
    c.sum().backward()
    return found, refusal(lambda: c.grad_fn._saved_result), refusal(lambda: product._saved_nothing)[0]


def hooks_of_one_saved_tensor(torch):
    a = _leaf(torch)
    y = a * a
    y.grad_fn._raw_saved_self.register_hooks(lambda x: 2 * x, lambda x: x)
    again = refusal(lambda: y.grad_fn._raw_saved_self.register_hooks(lambda x: x, lambda x: x))
    seen = y.grad_fn._saved_self
    y.sum().backward()
    z = a.exp()

    def writes(x):
        x *= 2
        return x

    t = (a + 0) * 2 * a
    return (
        seen,
        a.grad,
        again,
        refusal(lambda: z.grad_fn._raw_saved_result.register_hooks(1, 1))[0],
        refusal(lambda: t.grad_fn._raw_saved_self.register_hooks(writes, lambda x: x)),
        refusal(lambda: torch._C._autograd.SavedTensor())[0],
    )


def gradients_of_edges(torch):
    x = _leaf(torch).clone()
    edge = torch.autograd.graph.get_gradient_edge(x)
    x *= 2
    old, new = torch.autograd.grad(x.sum(), (edge, x))
    y = _leaf(torch)
    out = (y * 3).sum()
    node = torch.autograd.graph.GradientEdge(out.grad_fn, 0)
    by_edge = torch.autograd.grad(node, y)
    z = (y * 5).sum()
    torch.autograd.backward(torch.autograd.graph.get_gradient_edge(z))
    kinds = isinstance(out.grad_fn, torch.autograd.graph.Node), isinstance(1, torch.autograd.graph.Node)
    return old, new, by_edge, y.grad, edge.output_nr, kinds


def backward_into_tensors_that_are_no_leaves(torch):
    x = _leaf(torch)
    middle = x * 2
    out = (middle * 3).sum()
    out.backward(inputs=[middle], retain_graph=True)
    first = middle.grad, x.grad
    out.backward(inputs=[middle, x])
    return first, middle.grad, x.grad, middle.retains_grad


def nodes_are_called(torch):
    x = _leaf(torch)
    node = x.exp().grad_fn
    return (
        node(torch.ones(3)),
        refusal(lambda: node())[0],
        refusal(lambda: node(torch.ones(3), torch.ones(3))),
        [tuple(m.shape) for m in torch.max(x.reshape(3, 1), 0)[0].grad_fn._input_metadata][:1],
        node.next_functions[0][0].name(),
    )


def what_hooks_know_of_the_running_pass(torch):
    x = _leaf(torch)
    y = x * 2
    seen = []

    def hook(grad):
        seen.append(torch._C._current_graph_task_id())
        with torch.autograd.set_multithreading_enabled(False):
            seen.append([n.name() for n in torch._C._current_graph_task_execution_order()])
        seen.append(torch._C._will_engine_execute_node(x.grad_fn or y.grad_fn))

    z = y.sin().sum()
    z.register_hook(hook)
    with torch.autograd.set_multithreading_enabled(False):
        z.backward(retain_graph=True)
        z.backward()
    return seen[3] - seen[0], seen[1], seen[2], torch._C._current_graph_task_id()


def hooks_of_outputs_without_gradient(torch):
    x = _leaf(torch)
    first, second, _ = x.unbind()
    seen = []
    first.register_hook(lambda g: seen.append(g))
    first.backward(retain_graph=True)
    second.backward()
    other = torch.stack([_leaf(torch), _leaf(torch)]).unbind()
    other[0].register_hook(lambda g: torch.ones(3))
    return seen, x.grad, refusal(lambda: other[1].sum().backward())


def retained_gradients_after_writes_to_views(torch):
    base = _leaf(torch).clone()
    view, second = base[:2], base[:2]
    view.retain_grad()
    second.retain_grad()
    base.retain_grad()
    view.mul_(2)
    (view + second * 3).sum().backward()
    return view.grad, second.grad, base.grad


def writes_to_saved_tensors(torch):
    found = []
    for write in (lambda b: b.sin_(), lambda b: b[:2].mul_(3), lambda b: torch.add(torch.ones(3), 1, out=b)):
        a = _leaf(torch)
        with torch.autograd.graph.allow_mutation_on_saved_tensors() as saved:
            b = a.clone()
            out = (b**2).sum()
            found.append(len(list(saved.cloned.items())))
            with torch.no_grad():
                write(b)
            found.append(len(list(saved.cloned.items())))
            out.backward()
            found.append(len(list(saved.cloned.items())))
        found.append(a.grad)
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        late = (_leaf(torch) ** 2).sum()
        nested = refusal(lambda: torch.autograd.graph.allow_mutation_on_saved_tensors().__enter__())
    return found, nested, refusal(lambda: late.backward())[0]


def _selective(torch, function, choice, **options):
    from functools import partial

    from_torch = torch.utils.checkpoint
    x = _leaf(torch)
    contexts = partial(from_torch.create_selective_checkpoint_contexts, choice, **options)
    out = from_torch.checkpoint(function, x, use_reentrant=False, context_fn=contexts)
    return x, out


def selective_checkpoints(torch):
    aten = torch.ops.aten
    policies = torch.utils.checkpoint.CheckpointPolicy
    seen = []

    def policy(context, op, *args, **kwargs):
        seen.append([context.is_recompute, str(op)])
        return policies.MUST_SAVE if op is aten.exp.default else policies.PREFER_RECOMPUTE

    found = []
    for choice in (
        policy,
        [aten.sin.default],
        [aten.sin.default, aten.exp.default, aten.mul.Tensor],
        lambda c, o, *a: True,
    ):
        x, out = _selective(torch, lambda x: (x.sin().exp() * x).cos(), choice)
        out.sum().backward()
        found.append(x.grad)
    return found, seen


def refusals_of_selective_checkpoints(torch):
    make = torch.utils.checkpoint.create_selective_checkpoint_contexts
    sin = [torch.ops.aten.sin.default]
    _, twice = _selective(torch, lambda x: x.sin().cos().exp(), sin)
    twice.sum().backward(retain_graph=True)
    _, written = _selective(torch, lambda x: x.sin().mul_(2).cos().exp(), sin)
    x, allowed = _selective(
        torch, lambda x: x.sin().mul_(2).cos().exp(), sin, allow_cache_entry_mutation=True
    )
    allowed.sum().backward()
    return (
        refusal(lambda: make([2])),
        refusal(lambda: make([torch.ops.aten.sin])),
        refusal(lambda: make(2)),
        refusal(lambda: twice.sum().backward()),
        refusal(lambda: written.sum().backward())[0],
        x.grad is not None,
    )


def checkpoints_that_save_more_the_second_time(torch):
    runs = []

    def function(x):
        runs.append(1)
        return x.sin().exp() if len(runs) == 1 else x.sin().exp().cos()

    x = _leaf(torch)
    with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        out = torch.utils.checkpoint.checkpoint(function, x, use_reentrant=False)
    return refusal(lambda: out.sum().backward())[0]


def functions_that_cannot_be_used(torch):
    class Plain(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    class Both(Plain):
        @staticmethod
        def vjp(ctx, g):
            return g

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        made = Plain()
    return (
        refusal(lambda: Both.apply(_leaf(torch)).sum().backward()),
        [w.category.__name__ for w in seen],
        refusal(lambda: made(torch.ones(2))),
        refusal(lambda: Plain.vmap(None, None)),
    )


def attributes_that_cannot_be_deleted(torch):
    x = _leaf(torch)

    def delete(name):
        delattr(x, name)

    number = torch.tensor(3)

    def set_data():
        x.data = number

    view = x[:]
    with torch.no_grad():
        view.mul_(2)
    return (
        refusal(lambda: delete("requires_grad"))[0],
        refusal(lambda: delete("data"))[0],
        refusal(set_data),
        repr(view),
    )


def numbers_of_a_tensor_that_requires_grad(torch):
    x = _leaf(torch)
    with torch.no_grad():
        inside = x.numpy().tolist()
    return inside, refusal(x.numpy)


def gradients_of_parameters_that_a_function_closes_over(torch):
    double = torch.float64
    x = torch.tensor([0.3, 0.7], dtype=double, requires_grad=True)
    w = torch.tensor([1.5, -0.5], dtype=double, requires_grad=True)

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, w):
            return x * w

        @staticmethod
        def backward(ctx, g):
            return g, g

    check, twice = torch.autograd.gradcheck, torch.autograd.gradgradcheck
    return (
        check(lambda x, _: x * w.sin(), (x, w)),
        refusal(lambda: check(lambda x, _: Wrong.apply(x, w), (x, w)))[0],
        check(lambda x: (x * w).exp(), (x,), check_forward_ad=True, check_batched_grad=True),
        check(lambda x: (x * w).exp(), (x,), check_forward_ad=True, check_backward_ad=False, fast_mode=True),
        twice(lambda x: (x * w).exp(), (x,), check_fwd_over_rev=True),
        refusal(lambda: check(lambda x: x * 2, (x,), check_backward_ad=False))[0],
        x,
        w,
    )


def tangents_of_functions_with_a_jvp(torch):
    forward_ad = torch.autograd.forward_ad

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, factor):
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)
            ctx.factor = factor
            return x * y * factor, x.argmax()

        @staticmethod
        def backward(ctx, g, _):
            x, y = ctx.saved_tensors
            return g * y * ctx.factor, g * x * ctx.factor, None

        @staticmethod
        def jvp(ctx, tx, ty, _):
            x, y = ctx.saved_tensors
            return (
                tx * y + ty * x
            ) * ctx.factor * 10, None  # ten times too much, which shows that it is used

    class Wrong(Product):
        @staticmethod
        def jvp(ctx, tx, ty, _):
            return tx, tx

    x, y = torch.tensor([2.0, 3.0]), torch.tensor([5.0, 7.0])
    found = []
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.tensor([1.0, 2.0]))
        out, place = Product.apply(dual.sin(), y, 3)
        found += [forward_ad.unpack_dual(out.exp().log()).tangent, forward_ad.unpack_dual(place).tangent]
        both = Product.apply(dual, forward_ad.make_dual(y, torch.ones(2)), 1)[0]
        found.append(forward_ad.unpack_dual(both).tangent)
        found.append(refusal(lambda: Wrong.apply(dual, y, 1)))
        found.append(forward_ad.unpack_dual(Product.apply(x, y, 1)[0]).tangent)
    leaf = x.clone().requires_grad_()
    Product.apply(leaf, y, 2)[0].sum().backward()
    return found, leaf.grad


def variables_of_every_kind(torch):
    """Variable(data, requires_grad, volatile): what is warned of, refused and shared."""
    Variable = import_module(torch.__name__ + ".autograd").Variable
    found = []
    for volatile in (False, True):
        for required in (False, True):
            for call in (
                lambda r=required, v=volatile: Variable(torch.ones(2), r, v),
                lambda r=required, v=volatile: Variable(torch.ones(2), volatile=v, requires_grad=r),
                lambda r=required, v=volatile: Variable(torch.ones(2).long(), requires_grad=r),
                lambda r=required, v=volatile: Variable(torch.ones(2) * 1j, requires_grad=r),
            ):
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always")
                    error = refusal(call)
                    made = call().requires_grad if error[0] == "nothing raised" else None
                found.append([error, made, sorted({str(w.message) for w in told})])
    source = torch.ones(2, requires_grad=True)
    leaf = Variable(source.detach())
    leaf += 1
    found += [source.detach().clone(), Variable(source * 2).is_leaf, Variable(source).requires_grad]
    found += [Variable().shape, refusal(Variable, 3), refusal(Variable, [1.0])]
    return [*found, isinstance(source, Variable), isinstance(3, Variable)]


def tracebacks_that_detection_keeps(torch):
    """Every node of a graph, that of a leaf too, keeps the stack of the call that made it, which ends with that call."""
    x = torch.ones(2, requires_grad=True)
    found = []
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            nodes = [(torch.sqrt(x * 0) * 3).sum().grad_fn]
            while nodes[-1].next_functions:
                nodes.append(nodes[-1].next_functions[0][0])
            for node in nodes:
                kept = node.metadata["traceback_"]
                found.append([list(node.metadata), kept[-1].strip().splitlines()[-1], len(kept) > 1])
            y = torch.sqrt(x * 0) * 0
            found.append(refusal(y.sum().backward))
        later = (x * 2).grad_fn
    found.append(list(later.metadata))
    lines = [line.strip() for w in told for line in str(w.message).splitlines()]
    return [*found, "y = torch.sqrt(x * 0) * 0" in lines, any("dispatch" in line for line in lines)]
