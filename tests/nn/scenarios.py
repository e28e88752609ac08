"""Stories about modules that end in plain data, the same for ours and for the real torch.

Each function takes ``torch`` and returns something that JSON can hold: what happened, in order.
"""
import copy
import pickle
from collections import OrderedDict

SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def numbers(tensor, digits=5):
    return [round(float(v), digits) for v in tensor.detach().reshape(-1).tolist()]


def failure(function, *args, **kwargs):
    """Type and first line of the error that a call raises (addresses left out)."""
    try:
        function(*args, **kwargs)
    except Exception as error:
        text = " ".join(str(error).split("\n")[0].replace("msadapter.", "torch.").split())
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
            failure(net.get_submodule, "blocks.7"), failure(net.get_submodule, "scale"),
            failure(net.get_parameter, "norm.running_mean"), failure(net.get_parameter, "absent"),
            failure(net.get_buffer, "scale"), failure(getattr, net, "absent"),
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
    out = {"errors": [
        failure(NoInit, weight), failure(NoInit, nn.ReLU()), failure(WithArgs, 1), failure(WithArgs, a=1),
        failure(setattr, net, "scale", 3), failure(setattr, net, "scale", torch.ones(1)),
        failure(setattr, net, "first", 3), failure(setattr, net, "seen", 3),
        failure(net.register_buffer, "a.b", torch.ones(1)), failure(net.register_buffer, "", torch.ones(1)),
        failure(net.register_buffer, "forward", torch.ones(1)), failure(net.register_buffer, 3, torch.ones(1)),
        failure(net.register_buffer, "b", 3), failure(net.register_parameter, "p", torch.ones(1)),
        failure(net.register_parameter, "p", weight * 2), failure(net.register_parameter, "p.q", weight),
        failure(net.register_parameter, "train", weight),
        failure(net.add_module, "m.n", nn.ReLU()), failure(net.add_module, "", nn.ReLU()),
        failure(net.add_module, "train", nn.ReLU()), failure(net.add_module, "m", 3), failure(net.add_module, 3, None),
        failure(net.train, 3), failure(net.to, torch.int32), failure(nn.Module(), 1), failure(delattr, net, "absent"),
    ]}
    net.first = None
    net.seen = torch.full((2,), 5.0)
    net.scale = nn.Parameter(torch.tensor(7.0))
    net.nothing = weight
    net.late = nn.Buffer(torch.zeros(1), persistent=False)
    del net.norm
    out["after"] = list(net.state_dict())
    out["buffer"] = numbers(net._buffers["seen"])
    out["kinds"] = [isinstance(net.late, nn.Buffer), isinstance(weight, nn.Parameter), isinstance(net.seen, nn.Parameter)]
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
        "keys": list(state), "metadata": {k: dict(v) for k, v in state._metadata.items()},
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
    out["assigned"] = [other.first.weight.data_ptr() == given["first.weight"].data_ptr(),
                       isinstance(other.first.weight, nn.Parameter), other.scale.requires_grad,
                       other.first.weight.requires_grad]
    return out


@scenario
def state_hooks(torch):
    nn = torch.nn
    log = []
    net = nn.Sequential(nn.Linear(1, 1))
    net.register_state_dict_pre_hook(lambda m, prefix, keep: log.append(["pre", prefix, keep]))
    net.register_state_dict_post_hook(lambda m, s, prefix, meta: log.append(["post", sorted(s), prefix, dict(meta)]))
    net[0]._register_state_dict_hook(lambda m, s, prefix, meta: s.__setitem__(prefix + "more", torch.ones(1)))
    net.register_load_state_dict_pre_hook(
        lambda m, s, prefix, meta, strict, missing, unexpected, errors: log.append(
            [type(m).__name__, sorted(s), prefix, strict, missing, unexpected, errors]))
    net[0].register_load_state_dict_pre_hook(lambda m, s, prefix, *rest: s.pop(prefix + "more"))
    net.register_load_state_dict_post_hook(lambda m, keys: log.append([list(keys.missing_keys),
                                                                       list(keys.unexpected_keys)]))
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
    m.register_forward_pre_hook(lambda mod, args, kwargs: (args, {"factor": kwargs.get("factor", 5.0)}),
                                with_kwargs=True)
    first = m.register_forward_hook(lambda mod, args, out: log.append(["post 1", float(args[0]), float(out)]))
    m.register_forward_hook(lambda mod, args, out: out + 0.5, prepend=True)
    m.register_forward_hook(lambda mod, args, kwargs, out: log.append(["post kw", kwargs, float(out)]),
                            with_kwargs=True)
    m.register_forward_hook(lambda mod, args, out: log.append(["always", out if out is None else float(out)]),
                            always_call=True)
    before = nn.modules.module.register_module_forward_pre_hook(lambda mod, args: log.append(["global pre"]))
    after = nn.modules.module.register_module_forward_hook(
        lambda mod, args, out: log.append(["global post", float(out)]))
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
        lambda mod, gi, go: log.append(["global", type(mod).__name__, len(gi), len(go)]))
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
    out = [net.double() is net, weight is net.first.weight, str(weight.dtype), str(net.norm.running_mean.dtype),
           str(net.norm.num_batches_tracked.dtype)]
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
    same = all(bool((a == b).all()) for a, b in zip(net.parameters(), twin.parameters()))
    with torch.no_grad():
        twin.scale.add_(1)
    out = [same, float(net.scale), float(twin.scale), isinstance(twin.scale, torch.nn.Parameter)]
    loaded = pickle.loads(pickle.dumps(torch.nn.Linear(2, 2)))
    out += [repr(loaded), isinstance(loaded.weight, torch.nn.Parameter), loaded.weight.requires_grad]
    p = torch.nn.Parameter(torch.ones(2), requires_grad=False)
    out += [repr(p), type(p * 2).__name__, type(p.data).__name__, type(p.detach()).__name__, p.is_leaf]
    out += [type(copy.deepcopy(p)).__name__, p.requires_grad, isinstance(p, torch.Tensor),
            type(torch.nn.Parameter()).__name__]
    return out


@scenario
def containers(torch):
    nn = torch.nn

    def kinds(c):
        return [f"{k}:{type(v).__name__}" for k, v in c._modules.items()]

    s = nn.Sequential(nn.ReLU(), nn.Tanh(), nn.GELU())
    out = [kinds(s[1:]), type(s[-1]).__name__, len(s), failure(lambda: s[5])]
    s.append(nn.SiLU()).insert(1, nn.Mish())
    out += [kinds(s)]
    del s[0]
    s[0] = nn.ELU()
    out += [kinds(s), kinds(s + nn.Sequential(nn.ReLU())), kinds(nn.Sequential(nn.ReLU()) * 2)]
    s.extend(nn.Sequential(nn.ReLU()))
    out += [type(s.pop(1)).__name__, kinds(s), failure(lambda: s * 0), failure(lambda: s + 3),
            failure(s.insert, 99, nn.ReLU()), failure(s.append, 3)]
    out += [kinds(nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh())))]

    m = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    m += [nn.GELU()]
    m.insert(1, nn.Mish())
    out += [kinds(m), kinds(m[::2]), kinds(m + [nn.ELU()]), failure(lambda: m[9]), failure(m.extend, 3),
            failure(m, 1)]
    del m[0:2]
    out += [kinds(m), repr(nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])), repr(nn.ModuleList()),
            nn.ModuleList([nn.ReLU()])[-1] is not None]

    d = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
    d.update([["c", nn.GELU()]])
    out += [list(d), "a" in d, type(d.pop("a")).__name__, list(d.keys()), failure(lambda: d["zz"]),
            failure(d.update, [1]), failure(d.update, [[1]]), failure(d.update, 3), repr(d)]

    p = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1), False), "text"])
    p.append(torch.ones(1, 2))
    out += [len(p), list(p.state_dict()), repr(p), p[-1].requires_grad, failure(lambda: p[9]), failure(p, 1),
            len(p[1:3]), failure(p.extend, torch.ones(2))]
    q = nn.ParameterDict({"z": torch.ones(2), "y": 3})
    q["x"] = nn.Parameter(torch.zeros(1))
    out += [list(q), repr(q), list(q.state_dict()), "y" in q, q.get("no", 5), q.pop("y"), list(q.keys()),
            failure(nn.ParameterDict().__setitem__, 3, torch.ones(1)), list(q | nn.ParameterDict({"w": torch.ones(1)}))]
    return out


@scenario
def initialisers(torch):
    init = torch.nn.init
    out = {}
    calls = {
        "uniform_": (-1.0, 2.0), "normal_": (0.5, 2.0), "trunc_normal_": (0.0, 1.0, -0.5, 1.0), "constant_": (0.3,),
        "ones_": (), "zeros_": (), "eye_": (), "xavier_uniform_": (1.5,), "xavier_normal_": (),
        "kaiming_uniform_": (0.2,), "kaiming_normal_": (0, "fan_out", "relu"), "orthogonal_": (1.2,),
        "sparse_": (0.3,),
    }
    for limits in ((-2.0, 2.0), (-0.1, 0.1), (1.0, 4.0)):
        torch.manual_seed(5)
        out[f"trunc{limits}"] = numbers(init.trunc_normal_(torch.empty(3, 4), 0.0, 1.0, *limits))
    for shape in ((5, 4), (3, 6), (20, 17)):
        for name, args in calls.items():
            torch.manual_seed(5)
            t = torch.empty(*shape)
            result = getattr(init, name)(t, *args)
            out[f"{name}{shape}"] = [result is t, *numbers(t.abs().sum().view(1), 3), *numbers(t.view(-1)[:4])]
    for groups in (1, 2):
        out[f"dirac_{groups}"] = numbers(init.dirac_(torch.empty(4, 2, 3), groups))
    out["gain"] = [init.calculate_gain(n) for n in ("linear", "tanh", "relu", "leaky_relu", "selu", "conv2d")]
    out["gain"] += [init.calculate_gain("leaky_relu", 0.3)]
    out["errors"] = [failure(init.calculate_gain, "no"), failure(init.calculate_gain, "leaky_relu", True),
                     failure(init.eye_, torch.ones(2)), failure(init.dirac_, torch.ones(2)),
                     failure(init.dirac_, torch.ones(3, 2, 2), 2), failure(init.xavier_uniform_, torch.ones(3)),
                     failure(init.kaiming_normal_, torch.ones(3, 3), mode="no"),
                     failure(init.orthogonal_, torch.ones(3)), failure(init.sparse_, torch.ones(3), 0.5)]
    p = torch.nn.Parameter(torch.empty(3))
    out["parameter"] = [init.ones_(p) is p, p.requires_grad, p.grad_fn is None]
    return out


@scenario
def clipping(torch):
    utils = torch.nn.utils

    def parameters():
        made = [torch.nn.Parameter(torch.zeros(n)) for n in (2, 3, 1)]
        made[0].grad = torch.tensor([3.0, -4.0])
        made[1].grad = torch.tensor([1.0, 2.0, -2.0])
        return made

    out = []
    for norm in (2.0, 1.0, float("inf"), 3.0):
        ps = parameters()
        total = utils.clip_grad_norm_(ps, 1.5, norm)
        out.append([round(float(total), 5), numbers(ps[0].grad), numbers(ps[1].grad), ps[2].grad is None])
    ps = parameters()
    utils.clip_grad_value_(ps, 1.5)
    out.append([numbers(ps[0].grad), numbers(ps[1].grad)])
    ps = parameters()
    out.append(numbers(utils.get_total_norm([p.grad for p in ps[:2]])))
    out.append(numbers(utils.clip_grad_norm_([], 1.0)))
    out.append(numbers(utils.clip_grad_norm_(ps[0], 100.0)) + numbers(ps[0].grad))
    ps[0].grad.fill_(float("nan"))
    out.append(failure(utils.clip_grad_norm_, ps, 1.0, error_if_nonfinite=True))
    vector = utils.parameters_to_vector(parameters())
    out.append(list(vector.shape))
    ps = parameters()
    utils.vector_to_parameters(torch.arange(6.0), ps)
    out.append([numbers(p) for p in ps])
    out.append(failure(utils.vector_to_parameters, [1.0], ps))
    return out


@scenario
def sequences(torch):
    rnn = torch.nn.utils.rnn
    rows = [torch.arange(3.0), torch.arange(10.0, 15.0), torch.tensor([7.0])]
    padded = rnn.pad_sequence(rows, batch_first=True, padding_value=-1.0)
    packed = rnn.pack_sequence(rows, enforce_sorted=False)
    back, lengths = rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-2.0, total_length=6)
    return {
        "padded": [numbers(r) for r in padded],
        "left": [numbers(r) for r in rnn.pad_sequence(rows, padding_side="left").t()],
        "packed": [numbers(packed.data), packed.batch_sizes.tolist(), packed.sorted_indices.tolist(),
                   packed.unsorted_indices.tolist()],
        "back": [[numbers(r) for r in back], lengths.tolist()],
        "unpacked": [numbers(r) for r in rnn.unpack_sequence(packed)],
        "moved": str(packed.to(torch.float64).data.dtype),
        "errors": [failure(rnn.pack_padded_sequence, padded, [1, 5, 3], True),
                   failure(rnn.pack_padded_sequence, padded, [5, 3, 0], True),
                   failure(rnn.pad_packed_sequence, packed, total_length=2), failure(rnn.pad_sequence, 3)],
    }


@scenario
def parametrisations(torch):
    nn = torch.nn
    parametrize = nn.utils.parametrize

    class Double(nn.Module):
        def forward(self, x):
            return x * 2

        def right_inverse(self, x):
            return x / 2

    class Plus(nn.Module):
        def forward(self, x):
            return x + 1

    class Wider(nn.Module):
        def forward(self, x):
            return torch.cat([x, x])

    m = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        m.weight.copy_(torch.tensor([[1.0, 3.0]]))
    out = [parametrize.is_parametrized(m)]
    parametrize.register_parametrization(m, "weight", Double())
    out += [parametrize.is_parametrized(m, "weight"), numbers(m.weight), list(m.state_dict()), repr(m),
            type(m).__name__, parametrize.type_before_parametrizations(m).__name__]
    parametrize.register_parametrization(m, "weight", Plus())
    out += [numbers(m.weight), numbers(m.parametrizations.weight.original),
            failure(setattr, m, "weight", torch.ones(1, 2)), failure(pickle.dumps, m)]
    with parametrize.cached():
        out += [m.weight is m.weight]
    out += [m.weight is m.weight, numbers(copy.deepcopy(m).weight)]
    parametrize.remove_parametrizations(m, "weight")
    out += [numbers(m.weight), type(m).__name__, list(m.state_dict()), isinstance(m.weight, nn.Parameter)]
    out += [failure(parametrize.register_parametrization, m, "weight", Wider()),
            failure(parametrize.register_parametrization, m, "absent", Double()),
            failure(parametrize.remove_parametrizations, m, "weight")]
    w = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    old = {"weight_g": torch.ones(2, 1), "weight_v": torch.eye(2), "bias": torch.zeros(2)}
    out += [list(w.state_dict()), repr(w.load_state_dict(old)), numbers(w.weight)]
    v = nn.utils.weight_norm(nn.Linear(2, 2))
    out += [list(v.state_dict()), list(nn.utils.remove_weight_norm(v).state_dict()),
            failure(nn.utils.remove_weight_norm, v)]
    s = nn.utils.spectral_norm(nn.Linear(2, 2))
    out += [list(s.state_dict()), sorted(nn.utils.remove_spectral_norm(s).state_dict())]
    return out


@scenario
def functional_calls(torch):
    from importlib import import_module

    call = import_module(torch.nn.utils.stateless.__name__)._functional_call
    net = torch.nn.Sequential(torch.nn.Linear(2, 1, bias=False), torch.nn.BatchNorm1d(1))
    before = numbers(net[0].weight)
    weights = {"0.weight": torch.tensor([[1.0, 2.0]])}
    x = torch.tensor([[1.0, 1.0], [0.0, 2.0]])
    out = [numbers(call(net, weights, (x,))), numbers(net[0].weight) == before]
    weights["0.weight"].requires_grad_()
    call(net, weights, x).pow(2).sum().backward()
    out += [weights["0.weight"].grad is not None, net[0].weight.grad is None]
    out += [failure(call, net, {"0.absent": x}, x), failure(call, net, weights, x, strict=True)]
    return out


@scenario
def lazy(torch):
    nn = torch.nn
    torch.manual_seed(1)
    m = nn.Sequential(nn.LazyLinear(3), nn.LazyBatchNorm1d())
    out = [repr(m), repr(m[0].weight), failure(lambda: m[0].weight.shape), failure(lambda: m[0].weight * 2)[0]]
    m(torch.ones(2, 4))
    out += [repr(m), list(m[0].weight.shape), type(m[0].weight).__name__, numbers(m[0].bias)]
    fresh = nn.LazyLinear(3)
    fresh.load_state_dict(m[0].state_dict())
    out += [list(fresh.weight.shape), nn.parameter.is_lazy(nn.LazyLinear(1).weight)]
    return out


@scenario
def mistakes(torch):
    nn, F = torch.nn, torch.nn.functional
    x = torch.ones(2, 3)
    return [
        failure(nn.Dropout, 1.5), failure(nn.GroupNorm, 2, 3), failure(nn.Embedding, 3, 2, padding_idx=5),
        failure(nn.Embedding.from_pretrained, torch.ones(3)), failure(nn.BatchNorm2d(3), x),
        failure(nn.BatchNorm1d(3), torch.ones(1, 3)), failure(nn.InstanceNorm1d(3, affine=True), torch.ones(2, 4, 5)),
        failure(nn.Conv2d, 3, 4, 2, groups=2), failure(nn.Conv2d, 4, 3, 2, groups=2),
        failure(nn.Conv2d, 3, 4, 2, stride=2, padding="same"), failure(nn.Conv2d, 3, 4, 2, groups=0),
        failure(nn.ConvTranspose2d, 3, 4, 2, padding_mode="reflect"),
        failure(nn.ConvTranspose1d(1, 1, 3, 2), torch.ones(1, 1, 3), [20]),
        failure(nn.LSTM, 3, 0), failure(nn.LSTM, 3, 4, dropout=2), failure(nn.GRU, 3, 4, proj_size=2),
        failure(nn.LSTM, 3, 4, proj_size=4), failure(nn.RNN, 3, 4, nonlinearity="no"),
        failure(nn.LSTM(3, 4), torch.ones(2, 2, 5)), failure(nn.LSTM(3, 4), torch.ones(2, 2, 2, 3)),
        failure(nn.GRU(3, 4), torch.ones(2, 2, 3), torch.ones(1, 1, 4)),
        failure(nn.LSTMCell(3, 4), torch.ones(2, 2, 3)), failure(nn.MultiheadAttention, 5, 2),
        failure(nn.MultiheadAttention(4, 2), x, x, x), failure(nn.MultiheadAttention, 0, 1),
        failure(nn.Transformer(4, 2, 1, 1, 4), torch.ones(2, 1, 4), torch.ones(2, 2, 4)),
        failure(nn.TransformerEncoderLayer, 4, 2, activation="no"), failure(nn.Softmax2d(), x),
        failure(nn.Unflatten, 1, 3.0), failure(nn.Hardtanh, 2.0, 1.0), failure(nn.MultiMarginLoss, 3),
        failure(nn.TripletMarginLoss, -1.0), failure(nn.MSELoss(reduction="no"), x, x),
        failure(nn.FractionalMaxPool2d, 2), failure(nn.FractionalMaxPool2d, 2, output_ratio=1.5),
        failure(F.glu, torch.ones(3, 3)), failure(F.embedding_bag, torch.ones(3, dtype=torch.int64), x),
        failure(F.gaussian_nll_loss, x, x, -x), failure(F.cosine_embedding_loss, x, x, torch.ones(2, 2)),
        failure(F.interpolate, torch.ones(1, 1, 2)), failure(F.interpolate, torch.ones(1, 1, 2), 3, 2.0),
        failure(F.interpolate, torch.ones(1, 1, 2), 3, align_corners=True),
        failure(F.local_response_norm, x, 2), failure(F.dropout1d, torch.ones(3)),
        failure(F.poisson_nll_loss, x, x, reduction="no"), failure(nn.AdaptiveLogSoftmaxWithLoss, 4, 5, [3, 2]),
        failure(nn.Module().forward, 1), failure(nn.Bilinear, 0, 1, 1),
    ]
