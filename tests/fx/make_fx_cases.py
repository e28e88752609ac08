"""torch.fx.experimental: what graphs of make_fx compute for other inputs than the examples, and what it refuses."""


def _make_fx(torch):
    import importlib

    return importlib.import_module(f"{torch.__name__}.fx.experimental.proxy_tensor").make_fx


def _network(torch):
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.LayerNorm(4))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.arange(parameter.numel()).reshape(parameter.shape) % 5 * 0.3 - 0.5)
    return net


def _inputs(torch):
    example = torch.linspace(-1, 1, 6).reshape(2, 3)
    return example, example * 2 + 1, torch.linspace(-1, 2, 12).reshape(3, 4)


def modules_become_operators(torch):
    net = _network(torch)
    example, x, _ = _inputs(torch)
    graph = _make_fx(torch)(net)(example)
    kinds = {node.op for node in graph.graph.nodes}
    return [graph(x), sorted(kinds), sorted(name for name, _ in graph.named_parameters())]


def constants_and_containers(torch):
    def function(d, items, number):
        first = d["a"] + items[0] * items[0].shape[0]
        return {"sum": first.sum(), "number": number, "pair": (first * number, torch.ones(2) + d["a"].mean())}

    example, x, _ = _inputs(torch)
    graph = _make_fx(torch)(function)({"a": example}, [example.clone()], 3)
    return graph({"a": x}, [x * 2], 3)


def gradients_inside(torch):
    def function(x, w):
        y = (x @ w).relu()
        return y, *torch.autograd.grad((y * y).sum(), [w])

    example, x, w = _inputs(torch)
    graph = _make_fx(torch)(function)(example, w.clone().requires_grad_())
    plain, differentiable = graph(x, w), graph(x, w.clone().requires_grad_())
    return [part.detach() for part in (*plain, *differentiable)]


def backward_inside(torch):
    def function(x, w):
        ((x @ w).tanh() * 2).sum().backward()
        return w.grad

    example, x, w = _inputs(torch)
    return _make_fx(torch)(function)(example, w.clone().requires_grad_())(x, w)


def gradients_of_parameters(torch):
    net = _network(torch)

    def function(x):
        return torch.autograd.grad(net(x).square().sum(), list(net.parameters()))

    example, x, _ = _inputs(torch)
    return _make_fx(torch)(function)(example)(x)


def writes_in_place(torch):
    def function(x):
        y = x.clone()
        y[0] = 0
        y += 1
        return y.mul_(2), x

    example, x, _ = _inputs(torch)
    return _make_fx(torch)(function)(example)(x)


def refused_branches(torch):
    found = []
    for function in (
        lambda x: x + 1 if x.sum() > 0 else x,
        lambda x: x + x.sum().item(),
        lambda x: x * float(x.mean()),
    ):
        try:
            _make_fx(torch)(function)(torch.ones(2))
        except RuntimeError as error:
            found.append("data-dependent control flow" in str(error))
    return found


def unknown_mode(torch):
    return _make_fx(torch)(lambda x: x, tracing_mode="other")(torch.ones(2))


def questions_about_sizes(torch):
    import importlib

    shapes = importlib.import_module(f"{torch.__name__}.fx.experimental.symbolic_shapes")
    x = torch.ones(2, 3)
    found = [
        shapes.guard_or_false(x.size(0) == 2),
        shapes.guard_or_true(x.size(0) > 5),
        shapes.is_concrete_int(x.size(0)),
    ]
    found += [shapes.statically_known_true(x.size(1) == 3), shapes.guard_size_oblivious(x.numel() == 1)]
    return [*found, len(shapes.free_symbols(x)), shapes.has_free_symbols(x), shapes.sym_eq(x.shape, (2, 3))]
