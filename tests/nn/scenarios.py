"""Short programs with modules, each with plain data as its result, which is compared with PyTorch's.

Each function takes ``torch`` and returns the events in their order, as data that JSON can hold.
"""

import copy
import pickle
import sys
from collections import OrderedDict

SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def numbers(tensor, digits=5):
    return [round(float(v), digits) for v in tensor.detach().reshape(-1).tolist()]


def failure(function, *args, **kwargs):
    """Return the type and the first line of the error that a call raises, without addresses."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        text = " ".join(str(error).split("\n")[0].replace("msadapter.", "torch.").split())
        if function is delattr and sys.version_info < (3, 11):  # its own text is the name alone
            text = f"{type(args[0]).__name__!r} object has no attribute {text!r}"
        return [type(error).__name__, text]
    return "no error"


def small_net(torch):
    nn = torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(3, 4)
            self.norm = nn.BatchNorm1d(4)
            self.blocks = nn.ModuleList([nn.Linear(4, 4, bias=False), nn.ReLU()])
            self.register_buffer("seen", torch.zeros(2))
            self.register_buffer("scratch", torch.ones(1), persistent=False)
            self.register_parameter("nothing", None)
            self.scale = nn.Parameter(torch.tensor(2.0))

        def forward(self, x):
            x = self.norm(self.first(x))
            for block in self.blocks:
                x = block(x)
            return x * self.scale

    torch.manual_seed(3)
    return Net()


@scenario
def naming(torch):
    net = small_net(torch)
    net.tied = net.first
    return {
        "parameters": [n for n, _ in net.named_parameters()],
        "all parameters": [n for n, _ in net.named_parameters(remove_duplicate=False)],
        "own parameters": [n for n, _ in net.named_parameters("p", recurse=False)],
        "buffers": [n for n, _ in net.named_buffers(prefix="x")],
        "modules": [n for n, _ in net.named_modules()],
        "all modules": [n for n, _ in net.named_modules(remove_duplicate=False)],
        "children": [n for n, _ in net.named_children()],
        "repr": repr(net),
        "submodule": repr(net.get_submodule("blocks.0")),
        "counts": [len(list(net.parameters())), len(list(net.buffers())), len(list(net.modules()))],
        "dir": [n for n in dir(net) if n in ("first", "scale", "seen", "forward", "blocks", "training")],
        "errors": [
            failure(net.get_submodule, "blocks.7"),
            failure(net.get_submodule, "scale"),
            failure(net.get_parameter, "norm.running_mean"),
            failure(net.get_parameter, "absent"),
            failure(net.get_buffer, "scale"),
            failure(getattr, net, "absent"),
        ],
    }


@scenario
def registering(torch):
    nn = torch.nn
    net = small_net(torch)

    class NoInit(nn.Module):
        def __init__(self, value):
            self.value = value

    class WithArgs(nn.Module):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

    weight = nn.Parameter(torch.ones(2))
    out = {
        "errors": [
            failure(NoInit, weight),
            failure(NoInit, nn.ReLU()),
            failure(WithArgs, 1),
            failure(WithArgs, a=1),
            failure(setattr, net, "scale", 3),
            failure(setattr, net, "scale", torch.ones(1)),
            failure(setattr, net, "first", 3),
            failure(setattr, net, "seen", 3),
            failure(net.register_buffer, "a.b", torch.ones(1)),
            failure(net.register_buffer, "", torch.ones(1)),
            failure(net.register_buffer, "forward", torch.ones(1)),
            failure(net.register_buffer, 3, torch.ones(1)),
            failure(net.register_buffer, "b", 3),
            failure(net.register_parameter, "p", torch.ones(1)),
            failure(net.register_parameter, "p", weight * 2),
            failure(net.register_parameter, "p.q", weight),
            failure(net.register_parameter, "train", weight),
            failure(net.add_module, "m.n", nn.ReLU()),
            failure(net.add_module, "", nn.ReLU()),
            failure(net.add_module, "train", nn.ReLU()),
            failure(net.add_module, "m", 3),
            failure(net.add_module, 3, None),
            failure(net.train, 3),
            failure(net.to, torch.int32),
            failure(nn.Module(), 1),
            failure(delattr, net, "absent"),
        ]
    }
    net.first = None
    net.seen = torch.full((2,), 5.0)
    net.scale = nn.Parameter(torch.tensor(7.0))
    net.nothing = weight
    net.late = nn.Buffer(torch.zeros(1), persistent=False)
    del net.norm
    out["after"] = list(net.state_dict())
    out["buffer"] = numbers(net._buffers["seen"])
    out["kinds"] = [
        isinstance(net.late, nn.Buffer),
        isinstance(weight, nn.Parameter),
        isinstance(net.seen, nn.Parameter),
    ]
    return out


@scenario
def states(torch):
    nn = torch.nn
    net = small_net(torch)

    class Extra(nn.Linear):
        def get_extra_state(self):
            return {"note": 5}

        def set_extra_state(self, state):
            self.note = state["note"]

    state = net.state_dict()
    out = {
        "keys": list(state),
        "metadata": {k: dict(v) for k, v in state._metadata.items()},
        "prefixed": list(net.state_dict(prefix="m.")),
        "detached": [v.requires_grad for v in state.values()],
        "kept": [v.requires_grad for v in net.state_dict(keep_vars=True).values()],
        "shares": state["scale"].data_ptr() == net.scale.data_ptr(),
    }
    extra = Extra(1, 1)
    out["extra keys"] = list(extra.state_dict())
    again = Extra(1, 1)
    out["extra load"] = [repr(again.load_state_dict(extra.state_dict())), again.note]
    out["extra missing"] = failure(again.load_state_dict, nn.Linear(1, 1).state_dict())
    out["extra unexpected"] = failure(nn.Linear(1, 1).load_state_dict, extra.state_dict())

    other = small_net(torch)
    with torch.no_grad():
        for p in other.parameters():
            p.add_(1.0)
    kept = other.scale
    out["load"] = repr(other.load_state_dict(state))
    out["values"] = numbers(other.first.weight)[:3] + numbers(other.scale)
    out["identity"] = other.scale is kept

    broken = OrderedDict(state)
    del broken["scale"]
    broken["alien"] = torch.ones(1)
    broken["first.alien"] = torch.ones(1)
    broken["first.weight"] = torch.ones(2, 2)
    broken["first.bias"] = 3

    def whole(f, *args, **kwargs):
        try:
            return repr(f(*args, **kwargs))
        except RuntimeError as error:
            return str(error)

    out["broken"] = whole(other.load_state_dict, broken)
    del broken["first.weight"], broken["first.bias"]
    out["not strict"] = whole(other.load_state_dict, broken, strict=False)
    out["not a dict"] = failure(other.load_state_dict, [1])

    given = OrderedDict((k, v.clone()) for k, v in state.items())
    other.scale.requires_grad_(False)
    other.load_state_dict(given, assign=True)
    out["assigned"] = [
        other.first.weight.data_ptr() == given["first.weight"].data_ptr(),
        isinstance(other.first.weight, nn.Parameter),
        other.scale.requires_grad,
        other.first.weight.requires_grad,
    ]
    return out


@scenario
def state_hooks(torch):
    nn = torch.nn
    log = []
    net = nn.Sequential(nn.Linear(1, 1))
    net.register_state_dict_pre_hook(lambda m, prefix, keep: log.append(["pre", prefix, keep]))
    net.register_state_dict_post_hook(
        lambda m, s, prefix, meta: log.append(["post", sorted(s), prefix, dict(meta)])
    )
    net[0]._register_state_dict_hook(lambda m, s, prefix, meta: s.__setitem__(prefix + "more", torch.ones(1)))
    net.register_load_state_dict_pre_hook(
        lambda m, s, prefix, meta, strict, missing, unexpected, errors: log.append(
            [type(m).__name__, sorted(s), prefix, strict, missing, unexpected, errors]
        )
    )
    net[0].register_load_state_dict_pre_hook(lambda m, s, prefix, *rest: s.pop(prefix + "more"))
    net.register_load_state_dict_post_hook(
        lambda m, keys: log.append([list(keys.missing_keys), list(keys.unexpected_keys)])
    )
    result = net.load_state_dict(net.state_dict(), strict=False)
    log.append(repr(result))
    net.register_state_dict_post_hook(bad := (lambda *a: 3))
    log.append(failure(net.state_dict))
    log.append(failure(net._register_state_dict_hook, bad))
    return log


@scenario
def forward_hooks(torch):
    nn = torch.nn
    log = []

    class Twice(nn.Module):
        def forward(self, x, *, factor=2.0):
            if factor < 0:
                raise ValueError("negative")
            log.append(["forward", float(x), factor])
            return x * factor

    m = Twice()
    x = torch.tensor(1.0)
    m.register_forward_pre_hook(lambda mod, args: log.append(["pre 1", len(args)]))
    m.register_forward_pre_hook(lambda mod, args: (args[0] + 1,), prepend=True)
    m.register_forward_pre_hook(
        lambda mod, args, kwargs: (args, {"factor": kwargs.get("factor", 5.0)}), with_kwargs=True
    )
    first = m.register_forward_hook(lambda mod, args, out: log.append(["post 1", float(args[0]), float(out)]))
    m.register_forward_hook(lambda mod, args, out: out + 0.5, prepend=True)
    m.register_forward_hook(
        lambda mod, args, kwargs, out: log.append(["post kw", kwargs, float(out)]), with_kwargs=True
    )
    m.register_forward_hook(
        lambda mod, args, out: log.append(["always", out if out is None else float(out)]), always_call=True
    )
    before = nn.modules.module.register_module_forward_pre_hook(lambda mod, args: log.append(["global pre"]))
    after = nn.modules.module.register_module_forward_hook(
        lambda mod, args, out: log.append(["global post", float(out)])
    )
    log.append(float(m(x)))
    log.append(float(m(x, factor=3.0)))
    log.append(failure(m, x, factor=-1.0))
    before.remove()
    after.remove()
    first.remove()
    log.append(float(m(x)))
    bad = Twice()
    bad.register_forward_pre_hook(lambda mod, args, kwargs: 3, with_kwargs=True)
    log.append(failure(bad, x))
    return log


@scenario
def backward_hooks(torch):
    nn = torch.nn
    log = []

    class Pair(nn.Module):
        def forward(self, a, b, c):
            return a * b, c, a + 1

    def show(grads):
        return [None if g is None else numbers(g) for g in grads]

    m = Pair()
    m.register_full_backward_hook(lambda mod, gi, go: log.append(["hook", show(gi), show(go)]))
    m.register_full_backward_hook(lambda mod, gi, go: (gi[0] * 2, gi[1], None), prepend=True)
    m.register_full_backward_pre_hook(lambda mod, go: log.append(["pre", show(go)]))
    m.register_full_backward_pre_hook(lambda mod, go: (go[0] * 10, go[1], go[2]))
    handle = nn.modules.module.register_module_full_backward_hook(
        lambda mod, gi, go: log.append(["global", type(mod).__name__, len(gi), len(go)])
    )
    a, b = torch.tensor([2.0], requires_grad=True), torch.tensor([3.0], requires_grad=True)
    x, y, z = m(a, b, 7)
    (x + z).sum().backward()
    log.append([y, numbers(a.grad), numbers(b.grad)])
    handle.remove()

    line = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        line.weight.copy_(torch.tensor([[1.0, -2.0]]))
    line.register_full_backward_hook(lambda mod, gi, go: log.append(["no input grad", show(gi), show(go)]))
    line(torch.tensor([[1.0, 2.0]])).sum().backward()
    log.append(numbers(line.weight.grad))
    log.append(failure(line.register_backward_hook, lambda *a: None))
    log.append([line(torch.ones(1, 2)).requires_grad])
    with torch.no_grad():
        log.append([line(torch.ones(1, 2)).requires_grad])
    return log


@scenario
def registration_hooks(torch):
    module = torch.nn.modules.module
    log = []
    handles = [
        module.register_module_parameter_registration_hook(lambda m, n, p: log.append(["parameter", n])),
        module.register_module_buffer_registration_hook(lambda m, n, b: log.append(["buffer", n, b is None])),
        module.register_module_module_registration_hook(lambda m, n, s: log.append(["module", n])),
    ]
    torch.nn.Sequential(torch.nn.BatchNorm1d(2))
    for handle in handles:
        handle.remove()
    torch.nn.Linear(1, 1)
    return log


@scenario
def conversions(torch):
    net = small_net(torch)
    weight = net.first.weight
    out = [
        net.double() is net,
        weight is net.first.weight,
        str(weight.dtype),
        str(net.norm.running_mean.dtype),
        str(net.norm.num_batches_tracked.dtype),
    ]
    net.to(torch.float16)
    out += [str(net.scale.dtype)]
    net.to("cpu", torch.float32)
    net.to(torch.zeros(1, dtype=torch.bfloat16))
    out += [str(net.scale.dtype), net.training, net.eval().norm.training, net.train().norm.training]
    net.float().requires_grad_(False)
    out += [any(p.requires_grad for p in net.parameters())]
    net.requires_grad_()
    net(torch.ones(2, 3)).sum().backward()
    grad = net.scale.grad
    net.double()
    out += [str(net.scale.grad.dtype), net.scale.grad is grad]
    net.zero_grad(set_to_none=False)
    out += [numbers(net.scale.grad)]
    net.zero_grad()
    out += [net.scale.grad is None]
    names = []
    net.apply(lambda m: names.append(type(m).__name__))
    out += names
    return out


@scenario
def copies(torch):
    net = small_net(torch)
    net.first.weight.note = "kept?"
    twin = copy.deepcopy(net)
    same = all(bool((a == b).all()) for a, b in zip(net.parameters(), twin.parameters(), strict=True))
    with torch.no_grad():
        twin.scale.add_(1)
    out = [same, float(net.scale), float(twin.scale), isinstance(twin.scale, torch.nn.Parameter)]
    loaded = pickle.loads(pickle.dumps(torch.nn.Linear(2, 2)))
    out += [repr(loaded), isinstance(loaded.weight, torch.nn.Parameter), loaded.weight.requires_grad]
    p = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    out += [repr(p), type(p * 2).__name__, type(p.data).__name__, type(p.detach()).__name__, p.is_leaf]
    out += [
        type(copy.deepcopy(p)).__name__,
        p.requires_grad,
        isinstance(p, torch.Tensor),
        type(torch.nn.Parameter()).__name__,
    ]
    return out


def golden_cases() -> dict:
    from tests.nn import scenarios_parts, scenarios_state  # noqa: F401  add their stories

    return dict(SCENARIOS)
