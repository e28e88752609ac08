"""What gradients, leaves and graphs own: memory, versions, nodes and Python objects that refer to each other in a circle."""

from __future__ import annotations

import gc
import warnings
import weakref

from tests.golden.answers import refusal


def _leaf(torch, *values):
    return torch.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def _names(node):
    """The names of a node and of those that follow it."""
    return (
        None if node is None else [node.name(), [_names(following) for following, _ in node.next_functions]]
    )


def a_recorded_gradient_has_memory_of_its_own(torch):
    """With create_graph, .grad is a copy: a write to it reaches neither the seed nor the graph."""
    found = []
    for shape, strides in (((3,), (1,)), ((2, 3), (1, 2))):
        x = torch.zeros(6).as_strided(shape, strides).requires_grad_()
        scale, seed = torch.full(shape, 2.0, requires_grad=True), torch.ones(shape, requires_grad=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (x + 0).backward(seed, create_graph=True)
            found.append([_names(x.grad.grad_fn), x.grad.stride(), x.grad.data_ptr() == seed.data_ptr()])
            x.grad = None
            (x * scale).backward(seed, create_graph=True)
            (x.grad * x.grad).sum().backward()
        found.append([x.grad, scale.grad, seed.grad])
    return found


def a_leaf_with_other_memory(torch):
    """set_ makes a tensor another leaf: a graph that has used it no longer ends there, but its gradient still arrives."""
    x = _leaf(torch)
    seen = []
    x.register_hook(lambda g: seen.append(g.tolist()))
    edge = torch.autograd.graph.get_gradient_edge(x)
    out, more = x * 2, x * 3
    with torch.no_grad():
        x.set_(torch.tensor([4.0, 5.0, 6.0]))
    return [
        refusal(torch.autograd.grad, out.sum(), x, retain_graph=True),
        torch.autograd.grad(out.sum(), edge)[0],
        edge.node is torch.autograd.graph.get_gradient_edge(x).node,
        [(more * more).sum().backward(), x.grad],
        [(x * x).sum().backward(), x.grad],
        len(seen),
    ]


def versions_that_are_set(torch):
    """autograd does not see writes to a tensor whose version is restored."""
    x = torch.ones(2, requires_grad=True).clone()
    y = x * x
    with torch.autograd._unsafe_preserve_version_counter(x):
        x.detach().mul_(3)
    found = [x._version]
    set_version = torch._C._autograd._unsafe_set_version_counter
    other = torch.zeros(2)
    with torch.autograd._unsafe_preserve_version_counter((x, other)):
        other.add_(1)
        x.detach().div_(3)
    found.append([x._version, other._version, torch.autograd.grad(y.sum(), x)[0]])
    set_version((x, other), (7, 5))
    found.append([x._version, other._version])
    found.append(refusal(set_version, (other,), (-1,)))
    return found


def parts_that_are_no_views(torch):
    """Parts of unsafe_split share memory, but neither versions nor graphs: one is written, and another still has a gradient."""
    found = []
    for split in (
        lambda x: x.unsafe_split(1),
        lambda x: x.unsafe_split_with_sizes((1, 2)),
        lambda x: x.unsafe_chunk(3),
        lambda x: torch.unsafe_split(x, 3),
        lambda x: torch.unsafe_chunk(x, 2, dim=1),
    ):
        a = torch.arange(9.0).reshape(3, 3).requires_grad_()
        b = a * 2
        first, *others = split(b)
        last = others[-1] if others else first
        kept = last * last
        first.mul_(2)
        (first.sum() + kept.sum()).backward()
        found.append([first._is_view(), first._version, last._version, b._version, a.grad])
        found.append([part.shape for part in (first, *others)])
    x = torch.zeros(2, 3)
    for call in (
        lambda: x.unsafe_split(-1),
        lambda: x.unsafe_chunk(0),
        lambda: x.unsafe_split_with_sizes([1]),
    ):
        found.append(refusal(call))
    return found


def moments_with_the_mean(torch):
    """var_mean and std_mean record one node, whose hooks get both gradients."""
    found = []
    for function in (torch.var_mean, torch.std_mean):
        for options in ({"dim": 0}, {}, {"dim": (0, 1), "correction": 0, "keepdim": True}):
            x = torch.tensor([[1.0, 2.0, 4.0], [3.0, -1.0, 0.5]], requires_grad=True)
            spread, mean = function(x, **options)
            seen = []
            mean.grad_fn.register_prehook(lambda grads, seen=seen: seen.append(len(grads)))
            found.append(
                [spread.grad_fn is mean.grad_fn, spread.grad_fn.name(), spread.output_nr, mean.output_nr]
            )
            (spread * 2 + mean * 3).sum().backward()
            found.append([spread, mean, x.grad, seen])
            only = [torch.autograd.grad(function(x, **options)[i].sum(), x)[0] for i in (0, 1)]
            found.append(only)
    z = torch.tensor([1 + 2j, 3 - 1j, 0.5j], requires_grad=True)
    spread, mean = torch.var_mean(z)
    (spread + mean.abs()).backward()
    return [*found, spread, mean, z.grad]


def written_inputs_that_are_not_returned(torch):
    """A Function that marks an input as written has to return it."""

    class Elsewhere(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            a.add_(b)
            ctx.mark_dirty(a)
            return a.clone(), a + b

        @staticmethod
        def backward(ctx, first, second):
            return first + second, first + 2 * second

    a, b = _leaf(torch), _leaf(torch)
    return [refusal(Elsewhere.apply, x, b) for x in (a.clone(), a.clone().view_as(a))]


def functions_that_are_differentiated_once(torch):
    """The gradients of such a function end in a node of their own, which refuses its backward."""

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, number, b):
            ctx.save_for_backward(a, b)
            return a * number * b

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * 2 * b, None, g * 2 * a

    a, b = _leaf(torch), _leaf(torch)
    first, second = torch.autograd.grad(Once.apply(a, 2, b).sum(), (a, b), create_graph=True)
    error = torch._C._functions.DelayedError("not again", 2)
    one, two = error(a * 1, b)
    return [
        [first, second, first.requires_grad, _names(first.grad_fn)],
        refusal(first.sum().backward),
        refusal(torch.autograd.grad, second.sum(), b),
        [one, two, one.requires_grad, type(one.grad_fn).__name__],
        refusal((one + two).sum().backward),
    ]


def hooks_around_an_accumulation(torch):
    """The hook after the node of a leaf gets the tensor that has become .grad, as the hooks before it have left it."""
    x = _leaf(torch)
    node = x.view_as(x).grad_fn.next_functions[0][0]
    x.register_hook(lambda g: g - 2)
    node.register_prehook(lambda grads: (grads[0] / 4,))
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad.add_(0.5).requires_grad_(False) and None)

    def last(inputs, outputs):
        x.grad = outputs[0] * 10

    node.register_hook(last)
    x.sum().backward()
    return x.grad


def _collected(torch, make):
    """Whether what `make` returns is gone after its last name is, and whether it is after a collection."""
    gc.collect()
    gc.disable()
    try:
        reference = weakref.ref(make())
        alone = reference() is None
    finally:
        gc.enable()
    gc.collect()
    return alone, reference() is None


def circles_that_are_collected(torch):
    """A result that the context of its Function keeps, and a leaf whose hook refers to it, do not stay for ever."""

    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, made):
            y = x.exp()
            ctx.made = made
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0], None

    def by_context(backward):
        x, made = _leaf(torch), {}
        made["y"] = Keeps.apply(x, made)
        if backward:
            made["y"].sum().backward()
        return made["y"]

    def by_hook_of_a_leaf():
        x = _leaf(torch)
        x.register_hook(lambda g: g * x.detach())
        return x

    kinds = (
        lambda: by_context(False),
        lambda: by_context(True),
        by_hook_of_a_leaf,
    )
    return [_collected(torch, make) for make in kinds]


def what_a_graph_still_uses_is_not_collected(torch):
    """Only the last owner of a node lets the collector see through it."""

    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, made):
            ctx.made = made
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.made["scale"], None

    x, made = _leaf(torch), {"scale": 3.0}
    made["y"] = Keeps.apply(x, made)
    made["z"] = made["y"] * 2
    out = made["z"].sum()
    del made
    gc.collect()
    out.backward()
    return x.grad


def tensors_of_inference_mode_that_require_grad(torch):
    """Operators on them outside of the mode are not recorded, and their views are tensors of inference mode too."""
    found = []
    for requires_grad in (True, False):
        with torch.inference_mode():
            c = torch.ones(1, 2, 3, requires_grad=requires_grad)
        for out in (
            c.view(-1),
            c.transpose(0, 1),
            c[0],
            c * 2,
            torch.add(c, 1),
            c.sum(),
            torch.matmul(c, c.mT),
        ):
            found.append([torch.is_inference(out), out.requires_grad, out._is_view(), out.is_leaf])
        x = torch.ones(3, requires_grad=True)
        found.append([(c + x).requires_grad, torch.autograd.grad((c + x).sum(), x)[0]])
        found.append(refusal(lambda c=c, x=x: c * x))
    return found


def a_warning_in_a_backward(torch):
    x = torch.zeros((), requires_grad=True)
    y = torch._C._nn._test_warn_in_autograd(x)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        y.backward()
    return [[w.category, str(w.message).partition(" (")[0]] for w in told], x.grad


def names_of_copies(torch):
    x = _leaf(torch)
    y = torch.zeros(3).copy_(x)
    return y.grad_fn.name(), [n and n.name() for n, _ in y.grad_fn.next_functions]


def views_of_several_at_once(torch):
    """A part is refused a recorded write also if it is the only one."""
    found = []
    for parts in (
        lambda a: a.unbind(),
        lambda a: a.split(1),
        lambda a: a.split_with_sizes([1]),
        lambda a: a.chunk(1),
        lambda a: a.unsafe_chunk(1),
        lambda a: a.tensor_split(1),
    ):
        scale = torch.ones(1, requires_grad=True)
        for a in (torch.ones(1, 2), torch.ones(1, 2, requires_grad=True) * 2):
            part = parts(a)[0]
            found.append([part._is_view(), part.grad_fn and part.grad_fn.name()])
            found.append(refusal(part.copy_, scale))
        leaf = torch.tensor([[1.0, 2.0]], requires_grad=True)
        (parts(leaf)[0] * torch.tensor([3.0, 4.0])).sum().backward()
        found.append(leaf.grad)
    return found
