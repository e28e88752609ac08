"""Hooks on tensors, nodes and gradient accumulators, and the order in which they run."""

from __future__ import annotations

from tests.golden.answers import refusal


def _leaf(torch, *values):
    return torch.tensor(values or (1.0, 2.0, 3.0), requires_grad=True)


def tensor_hook_changes_the_gradient(torch):
    x = _leaf(torch)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    return x.grad


def tensor_hook_on_a_leaf(torch):
    x, seen = _leaf(torch), []
    x.register_hook(lambda g: seen.append(g.tolist()) or g * 2)
    (x * 3 + x).sum().backward()
    return seen, x.grad


def removed_hook(torch):
    x, seen = _leaf(torch), []
    handle = x.register_hook(lambda g: seen.append("a"))
    with x.register_hook(lambda g: seen.append("b")):
        (x * 1).sum().backward()
    handle.remove()
    handle.remove()
    (x * 1).sum().backward()
    return seen


def hook_that_removes_itself(torch):
    x, seen, handles = _leaf(torch), [], []

    def once(g):
        seen.append("once")
        handles[0].remove()

    handles.append(x.register_hook(once))
    x.register_hook(lambda g: seen.append("always"))
    for _ in range(2):
        (x * 1).sum().backward()
    return seen


def order_of_all(torch):
    seen = []

    def note(what, answer=None):
        def hook(*args):
            seen.append(what)
            return answer

        return hook

    x = _leaf(torch)
    y = x * 2
    y.retain_grad()
    y.register_hook(note("tensor y"))
    y.grad_fn.register_prehook(note("pre mul"))
    y.grad_fn.register_hook(note("post mul"))
    x.register_hook(note("tensor x"))
    accumulator = y.grad_fn.next_functions[0][0]
    accumulator.register_prehook(note("pre accumulate"))
    accumulator.register_hook(note("post accumulate node"))
    x.register_post_accumulate_grad_hook(note("post accumulate x"))
    y.sum().backward()
    return seen


def order_of_registration_does_not_matter_across_kinds(torch):
    seen, x = [], _leaf(torch)
    y = x * 2
    y.grad_fn.register_prehook(lambda g: seen.append("pre") or None)
    y.register_hook(lambda g: seen.append("tensor") or None)
    y.sum().backward()
    return seen


def retained_grad_sees_the_hooks_result(torch):
    x = _leaf(torch)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    y.sum().backward()
    return y.grad, x.grad


def node_hooks_change_gradients(torch):
    x, y = _leaf(torch), _leaf(torch)
    z = x * y
    z.grad_fn.register_prehook(lambda grads: (grads[0] * 2,))
    z.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 3, None))
    z.sum().backward()
    return x.grad, y.grad


def node_hook_arguments(torch):
    seen, x = [], _leaf(torch)
    z = (x * 2).sum()
    z.grad_fn.register_hook(
        lambda inputs, outputs: seen.append([[i.shape for i in inputs], [o.shape for o in outputs]])
    )
    z.backward()
    return seen


def accumulator_hooks_as_data_parallel_uses_them(torch):
    seen, parameters, kept = [], [_leaf(torch), _leaf(torch)], []
    for i, p in enumerate(parameters):
        accumulator = p.expand_as(p).grad_fn.next_functions[0][0]
        accumulator.register_hook(lambda *unused, i=i, p=p: seen.append([i, p.grad is not None]))
        kept.append(accumulator)
    for _ in range(2):
        (parameters[0] * parameters[1]).sum().backward()
    return seen


def main_grad_pattern(torch):
    """A hook moves the gradient into a buffer and removes it from the parameter."""
    p, buffer, kept = _leaf(torch), torch.zeros(3), []
    accumulator = p.expand_as(p).grad_fn.next_functions[0][0]

    def move(*unused):
        buffer.add_(p.grad)
        p.grad = None

    accumulator.register_hook(move)
    kept.append(accumulator)
    for _ in range(3):
        (p * 2).sum().backward()
    return buffer, p.grad


def post_accumulate(torch):
    x, seen = _leaf(torch), []

    def step(p):
        seen.append([p is x, p.grad.tolist()])
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    return seen, x.grad, refusal((x * 2).register_post_accumulate_grad_hook, step)


def hooks_and_grad(torch):
    """autograd.grad of a leaf runs the hooks of the tensor, but not those of its accumulator."""
    x, seen = _leaf(torch), []
    x.register_hook(lambda g: seen.append("tensor") or g * 2)
    x.register_post_accumulate_grad_hook(lambda p: seen.append("post"))
    return torch.autograd.grad((x * 3).sum(), x), seen, x.grad


def hook_before_an_inplace_change(torch):
    x, seen = _leaf(torch), []
    y = x * 2
    y.register_hook(lambda g: seen.append(["before", g.tolist()]))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(["after", g.tolist()]))
    y.sum().backward()
    return seen, x.grad


def retained_grad_follows_an_inplace_change(torch):
    x = _leaf(torch)
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    (y * 5).sum().backward()
    return y.grad, x.grad


def hook_errors(torch):
    x = _leaf(torch)
    y = x * 1
    y.register_hook(lambda g: 1 / 0)
    z = x * 1
    z.register_hook(lambda g: 3)
    w = x * 1
    w.register_hook(lambda g: torch.ones(2))
    return (
        refusal(y.sum().backward),
        refusal(z.sum().backward),
        refusal(w.sum().backward),
        refusal(torch.ones(2).register_hook, print),
    )


def multi_grad_hook(torch):
    x, y, seen = _leaf(torch), _leaf(torch), []
    torch.autograd.graph.register_multi_grad_hook(
        (x, y), lambda grads: seen.append([None if g is None else g.tolist() for g in grads])
    )
    (x * y).sum().backward()
    (x * 2).sum().backward()
    return seen


def multi_grad_hook_any(torch):
    x, y, seen = _leaf(torch), _leaf(torch), []
    torch.autograd.graph.register_multi_grad_hook((x, y), lambda g: seen.append(g.tolist()), mode="any")
    (x * y * 2).sum().backward()
    (x * y * 2).sum().backward()
    return len(seen)


def hooks_are_kept_by_a_changed_gradient_flag(torch):
    x, seen = _leaf(torch), []
    x.register_hook(lambda g: seen.append(1))
    (x * 1).sum().backward()
    x.grad = None
    (x * 1).sum().backward()
    return len(seen)


def callbacks_at_the_end(torch):
    seen, x = [], _leaf(torch)

    def hook(g):
        torch.autograd.Variable._execution_engine.queue_callback(lambda: seen.append("callback"))
        seen.append("hook")

    x.register_hook(hook)
    (x * 2).sum().backward()
    return seen
