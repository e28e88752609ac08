"""backward, grad, leaves, versions, modes and views.

Each function runs on PyTorch and msadapter, and the answers are compared.
"""

from __future__ import annotations

import threading

from tests.golden.answers import refusal


def _leaf(torch, *values):
    return torch.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def backward_accumulates_in_place(torch):
    x = _leaf(torch)
    (x * 2).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    return x.grad is first, x.grad, first._version


def backward_with_create_graph_makes_a_new_grad(torch):
    x = _leaf(torch)
    (x**2).sum().backward(create_graph=True)
    first = x.grad
    (x**3).sum().backward(create_graph=True)
    return x.grad is first, x.grad, x.grad.requires_grad


def grad_does_not_share_memory_with_the_seed(torch):
    x, seed = _leaf(torch), torch.ones(3)
    (x + 0).backward(seed)
    seed.fill_(5.0)
    return x.grad


def grad_identity_with_one_user(torch):
    x = _leaf(torch)
    x.grad = torch.ones(3)
    given = x.grad
    (x * 2).sum().backward()
    return x.grad is given, given


def second_backward_is_refused(torch):
    x = _leaf(torch)
    y = (x * x).sum()
    y.backward()
    return refusal(y.backward)


def retain_graph(torch):
    x = _leaf(torch)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad


def second_backward_without_saved_tensors(torch):
    x = _leaf(torch)
    y = (x + 1).sum()
    y.backward()
    return refusal(y.backward), x.grad


def needs_scalar(torch):
    x = _leaf(torch)
    return refusal((x * 2).backward), refusal(x.detach().backward), refusal((x * 2).backward, torch.ones(2))


def integers_have_no_gradient(torch):
    return refusal(torch.tensor([1, 2]).requires_grad_), refusal(
        torch.ones(2, dtype=torch.int32, requires_grad=False).requires_grad_
    )


def grad_of_several(torch):
    x, y = _leaf(torch), _leaf(torch, 4.0, 5.0, 6.0)
    return torch.autograd.grad([(x * y).sum(), (x + y).sum()], [x, y]), x.grad


def grad_of_unused(torch):
    x, y = _leaf(torch), _leaf(torch)
    z = (x * 2).sum()
    return (
        refusal(torch.autograd.grad, z, [x, y], retain_graph=True),
        torch.autograd.grad(z, [x, y], allow_unused=True, retain_graph=True),
        torch.autograd.grad(z, [y], allow_unused=True, materialize_grads=True),
    )


def grad_of_intermediate(torch):
    x = _leaf(torch)
    y = x * 2
    z = (y**2).sum()
    return torch.autograd.grad(z, y), x.grad


def grad_outputs(torch):
    x = _leaf(torch)
    return torch.autograd.grad(x * 3, x, torch.tensor([1.0, 0.0, 2.0]))


def double_backward(torch):
    x = _leaf(torch)
    (g,) = torch.autograd.grad((x**4).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    return g, h, torch.autograd.grad(h.sum(), x)


def double_backward_of_many(torch):
    answers = []
    f = torch.nn.functional
    for call in (
        torch.tanh,
        torch.sigmoid,
        torch.exp,
        f.gelu,
        lambda x: torch.softmax(x, -1),
        lambda x: torch.log_softmax(x, -1),
        lambda x: f.layer_norm(x, (3,)),
        lambda x: x.matmul(x.t()),
        lambda x: x / (x + 1),
        lambda x: x.norm(),
        f.silu,
        lambda x: f.cross_entropy(x, torch.tensor([0, 2])),
        lambda x: x.prod(),
        lambda x: x.cumsum(-1),
        lambda x: x[:, [0, 0, 2]],
    ):
        x = torch.tensor([[0.1, 0.9, -0.3], [1.2, -0.7, 0.4]], dtype=torch.float64, requires_grad=True)
        (g,) = torch.autograd.grad((call(x) ** 2).sum(), x, create_graph=True)
        answers.append([g, *torch.autograd.grad((g * g).sum(), x)])
    return answers


def backward_of_inputs_only(torch):
    x, y = _leaf(torch), _leaf(torch)
    z = x * y
    z.sum().backward(inputs=[x])
    return x.grad, y.grad, refusal((x * 2).sum().backward, inputs=[])


def retained_grad(torch):
    x = _leaf(torch)
    y = x * 2
    y.retain_grad()
    before = y.retains_grad
    (y * 3).sum().backward()
    return before, y.grad, y.is_leaf, x.retains_grad


def leaf_rules(torch):
    x = _leaf(torch)
    y = x * 2
    return (
        x.is_leaf,
        y.is_leaf,
        x.detach().is_leaf,
        refusal(x.add_, 1),
        refusal(x[0].add_, 1),
        refusal(setattr, y, "requires_grad", False),
        refusal(x.numpy),
        refusal(x.resize_, 2),
        y.detach().requires_grad,
    )


def leaf_changed_without_grad(torch):
    x = _leaf(torch)
    with torch.no_grad():
        x.mul_(2)
        x[0] = 7
    (x * x).sum().backward()
    return x, x.grad, x.is_leaf, x._version


def version_error(torch):
    x = _leaf(torch)
    y = x.exp()
    y.add_(1)
    z = x * 2
    w = z * z
    z.mul_(3)
    return refusal(y.sum().backward), refusal(w.sum().backward)


def version_error_text(torch):
    y = _leaf(torch).exp()
    y.add_(1)
    try:
        y.sum().backward()
    except RuntimeError as error:
        return str(error)


def versions(torch):
    x = torch.zeros(4)
    seen = [x._version]
    v = x[1:3]
    v.add_(1)
    seen += [x._version, v._version]
    x.data.add_(1)
    seen.append(x._version)
    x.detach().add_(1)
    seen.append(x._version)
    x[0] = 3
    x.copy_(torch.ones(4))
    with torch.no_grad():
        x.zero_()
    return [*seen, x._version]


def inplace_on_a_view_reaches_the_base(torch):
    x = torch.ones(2, 3, requires_grad=True)
    y = x * 2
    v = y[0]
    v.mul_(5)
    w = y.t()[1]
    w.tanh_()
    y.sum().backward()
    return y, v, x.grad, type(y.grad_fn).__name__, type(v.grad_fn).__name__


def inplace_on_the_base_reaches_views(torch):
    x = torch.ones(4, requires_grad=True)
    y = x * 1
    views = [y[1:], y.view(2, 2), y.view(2, 2).t()[0], y.unsqueeze(0).expand(3, 4)]
    y.mul_(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    sum((v * (i + 1)).sum() for i, v in enumerate(views)).backward()
    return views, x.grad


def inplace_with_a_differentiable_value(torch):
    base, value = torch.zeros(3, 3), _leaf(torch)
    base[1] = value * 2
    base[:, 0].copy_(value)
    base.sum().backward()
    return base.requires_grad, value.grad


def view_made_in_no_grad(torch):
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    with torch.no_grad():
        v = y.view(3)
    return v.requires_grad, refusal(v.mul_, x)


def slices_are_copied_into(torch):
    x = torch.ones(5, requires_grad=True)
    y = x.clone()
    y[1:3] = y[2:4] * 2
    y[y > 1.5] = 0.5
    (y * torch.arange(5.0)).sum().backward()
    return y, x.grad


def no_grad_forms(torch):
    x = _leaf(torch)

    @torch.no_grad()
    def plain(v):
        return v * 2

    @torch.no_grad
    def bare(v):
        return v * 2

    @torch.inference_mode()
    def inference(v):
        return v * 2

    @torch.no_grad()
    def generator(v):
        for _ in range(2):
            yield (v * 2).requires_grad, torch.is_grad_enabled()

    @torch.enable_grad()
    def enabled(v):
        return v * 2

    seen = [
        plain(x).requires_grad,
        bare(x).requires_grad,
        inference(x).requires_grad,
        torch.is_grad_enabled(),
    ]
    for item in generator(x):
        seen += [*item, torch.is_grad_enabled()]
    with torch.no_grad():
        seen += [enabled(x).requires_grad, torch.is_grad_enabled()]
        with torch.set_grad_enabled(True):
            seen.append(torch.is_grad_enabled())
        seen.append(torch.is_grad_enabled())
    torch.set_grad_enabled(False)
    seen.append(torch.is_grad_enabled())
    torch.set_grad_enabled(True)
    with torch.inference_mode():
        seen += [torch.is_inference_mode_enabled(), torch.is_grad_enabled()]
    return seen


def modes_survive_errors(torch):
    seen = []
    for mode in (torch.no_grad, torch.inference_mode):
        try:
            with mode():
                raise KeyError
        except KeyError:
            seen.append(torch.is_grad_enabled())
    return seen


def requires_grad_is_infectious(torch):
    x, y = torch.ones(2), torch.ones(2, requires_grad=True)
    return [
        t.requires_grad
        for t in (x + x, x + y, (x + y).detach(), (y > 0), y.argmax(), y.to(torch.float64), y.long())
    ]


def graph_walk(torch):
    x, y = _leaf(torch), _leaf(torch)
    z = ((x * y) + x).sum()
    names, level = [], [z.grad_fn]
    while level:
        names.append([type(n).__name__ if n is not None else None for n in level])
        level = [f for n in level if n is not None for f, _ in n.next_functions]
    return names, z.grad_fn.name(), z.grad_fn.next_functions[0][1]


def next_functions_of_unrecorded_operands(torch):
    x = _leaf(torch)
    return [
        [None if f is None else type(f).__name__, i] for f, i in (x * torch.ones(3)).grad_fn.next_functions
    ]


def accumulator_is_one_object(torch):
    p = _leaf(torch)
    first = p.expand_as(p).grad_fn.next_functions[0][0]
    again = p.expand_as(p).grad_fn.next_functions[0][0]
    used = (p * 2).grad_fn.next_functions[0][0]
    return (
        first is again,
        first is used,
        type(first).__name__,
        first.variable is p,
        (p * 1).grad_fn.next_functions[0][0].variable is p,
    )


def detach_inplace(torch):
    x = _leaf(torch)
    y = x * 2
    y.detach_()
    return y.requires_grad, y.is_leaf, refusal((x * 2)[0].detach_)


def complex_gradient(torch):
    z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    (z * z.conj()).real.sum().backward()
    return z.grad, refusal((z * 2).sum().backward)


def cast_in_the_graph(torch):
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    (x.float() * 3).to(torch.bfloat16).sum().backward()
    return x.grad


def broadcast_gradients(torch):
    x, y = torch.ones(3, 1, requires_grad=True), torch.ones(4, requires_grad=True)
    (x * y * torch.arange(12.0).view(3, 4)).sum().backward()
    return x.grad, y.grad


def shared_use(torch):
    x = _leaf(torch)
    y = x * 2
    (y + y * y + x).sum().backward()
    return x.grad


def deep_chain(torch):
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(5000):
        y = y + 1
    y.backward()
    return x.grad, y


def grads_given_by_hand(torch):
    x = _leaf(torch)
    return (
        refusal(setattr, x, "grad", torch.ones(2)),
        refusal(setattr, x, "grad", torch.ones(3, dtype=torch.float64)),
        refusal(setattr, x, "grad", 3.0),
    )


def setting_data_keeps_the_leaf(torch):
    x = _leaf(torch)
    x.data = torch.tensor([5.0, 6.0, 7.0])
    (x * x).sum().backward()
    return x, x.grad, x.is_leaf, x.requires_grad


def threads(torch):
    x, seen = _leaf(torch), {}

    def work(i):
        seen[i] = torch.is_grad_enabled()
        with torch.no_grad():
            pass
        seen[i, "grad"] = torch.autograd.grad((x * i).sum(), x)[0].tolist()

    with torch.no_grad():
        group = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in group:
            thread.start()
        for thread in group:
            thread.join()
    return [seen[i] for i in range(4)], [seen[i, "grad"] for i in range(4)]


def functional_derivatives(torch):
    def f(x):
        return (x**3).sum()

    x = torch.tensor([1.0, 2.0])
    functional = torch.autograd.functional
    return (
        functional.jacobian(lambda v: v**2, x),
        functional.hessian(f, x),
        functional.vjp(f, x),
        functional.hvp(f, x, torch.ones(2)),
    )


def variable(torch):
    """Variable, the older name of Tensor, creates leaf tensors, and every tensor is an instance of it."""
    Variable = torch.autograd.Variable
    x = torch.arange(3.0)
    leaf = Variable(x, requires_grad=True)
    (leaf * leaf).sum().backward()
    again = Variable(leaf * 2)
    return (
        [type(leaf) is torch.Tensor, leaf.is_leaf, leaf.data_ptr() == x.data_ptr(), leaf.grad],
        [again.is_leaf, again.requires_grad, Variable().shape, Variable(torch.nn.Parameter(x)).requires_grad],
        [isinstance(v, Variable) for v in (x, torch.nn.Parameter(x), 3)],
        [Variable is torch.Tensor, Variable.__module__],
        refusal(Variable, 2.5),
        refusal(Variable, [1, 2]),
        refusal(Variable, x, volatile=True, requires_grad=True),
    )
