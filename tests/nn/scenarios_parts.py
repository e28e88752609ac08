"""Scenarios with containers, initialisers, ``nn.utils`` and errors; see ``scenarios.py``."""

import copy
import importlib
import pickle
from collections import OrderedDict

from tests.nn.scenarios import failure, numbers, scenario


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
    out += [
        type(s.pop(1)).__name__,
        kinds(s),
        failure(lambda: s * 0),
        failure(lambda: s + 3),
        failure(s.insert, 99, nn.ReLU()),
        failure(s.append, 3),
    ]
    out += [kinds(nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh())))]

    m = nn.ModuleList([nn.ReLU(), nn.Tanh()])
    m += [nn.GELU()]
    m.insert(1, nn.Mish())
    out += [
        kinds(m),
        kinds(m[::2]),
        kinds(m + [nn.ELU()]),
        failure(lambda: m[9]),
        failure(m.extend, 3),
        failure(m, 1),
    ]
    del m[0:2]
    out += [
        kinds(m),
        repr(nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])),
        repr(nn.ModuleList()),
        nn.ModuleList([nn.ReLU()])[-1] is not None,
    ]

    d = nn.ModuleDict({"b": nn.ReLU(), "a": nn.Tanh()})
    d.update([["c", nn.GELU()]])
    out += [
        list(d),
        "a" in d,
        type(d.pop("a")).__name__,
        list(d.keys()),
        failure(lambda: d["zz"]),
        failure(d.update, [1]),
        failure(d.update, [[1]]),
        failure(d.update, 3),
        repr(d),
    ]

    p = nn.ParameterList([torch.ones(2), nn.Parameter(torch.zeros(1), False), "text"])
    p.append(torch.ones(1, 2))
    out += [
        len(p),
        list(p.state_dict()),
        repr(p),
        p[-1].requires_grad,
        failure(lambda: p[9]),
        failure(p, 1),
        len(p[1:3]),
        failure(p.extend, torch.ones(2)),
    ]
    q = nn.ParameterDict({"z": torch.ones(2), "y": 3})
    q["x"] = nn.Parameter(torch.zeros(1))
    out += [
        list(q),
        repr(q),
        list(q.state_dict()),
        "y" in q,
        q.get("no", 5),
        q.pop("y"),
        list(q.keys()),
        failure(nn.ParameterDict().__setitem__, 3, torch.ones(1)),
        list(q | nn.ParameterDict({"w": torch.ones(1)})),
    ]
    return out


@scenario
def initialisers(torch):
    init = torch.nn.init
    out = {}
    calls = {
        "uniform_": (-1.0, 2.0),
        "normal_": (0.5, 2.0),
        "trunc_normal_": (0.0, 1.0, -0.5, 1.0),
        "constant_": (0.3,),
        "ones_": (),
        "zeros_": (),
        "eye_": (),
        "xavier_uniform_": (1.5,),
        "xavier_normal_": (),
        "kaiming_uniform_": (0.2,),
        "kaiming_normal_": (0, "fan_out", "relu"),
        "orthogonal_": (1.2,),
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
            out[f"{name}{shape}"] = [
                result is t,
                *numbers(t.abs().sum().view(1), 3),
                *numbers(t.view(-1)[:4]),
            ]
    for groups in (1, 2):
        out[f"dirac_{groups}"] = numbers(init.dirac_(torch.empty(4, 2, 3), groups))
    out["gain"] = [init.calculate_gain(n) for n in ("linear", "tanh", "relu", "leaky_relu", "selu", "conv2d")]
    out["gain"] += [init.calculate_gain("leaky_relu", 0.3)]
    out["errors"] = [
        failure(init.calculate_gain, "no"),
        failure(init.calculate_gain, "leaky_relu", True),
        failure(init.eye_, torch.ones(2)),
        failure(init.dirac_, torch.ones(2)),
        failure(init.dirac_, torch.ones(3, 2, 2), 2),
        failure(init.xavier_uniform_, torch.ones(3)),
        failure(init.kaiming_normal_, torch.ones(3, 3), mode="no"),
        failure(init.orthogonal_, torch.ones(3)),
        failure(init.sparse_, torch.ones(3), 0.5),
    ]
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
        "packed": [
            numbers(packed.data),
            packed.batch_sizes.tolist(),
            packed.sorted_indices.tolist(),
            packed.unsorted_indices.tolist(),
        ],
        "back": [[numbers(r) for r in back], lengths.tolist()],
        "unpacked": [numbers(r) for r in rnn.unpack_sequence(packed)],
        "moved": str(packed.to(torch.float64).data.dtype),
        "errors": [
            failure(rnn.pack_padded_sequence, padded, [1, 5, 3], True),
            failure(rnn.pack_padded_sequence, padded, [5, 3, 0], True),
            failure(rnn.pad_packed_sequence, packed, total_length=2),
            failure(rnn.pad_sequence, 3),
        ],
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
    out += [
        parametrize.is_parametrized(m, "weight"),
        numbers(m.weight),
        list(m.state_dict()),
        repr(m),
        type(m).__name__,
        parametrize.type_before_parametrizations(m).__name__,
    ]
    parametrize.register_parametrization(m, "weight", Plus())
    out += [
        numbers(m.weight),
        numbers(m.parametrizations.weight.original),
        failure(setattr, m, "weight", torch.ones(1, 2)),
        failure(pickle.dumps, m),
    ]
    with parametrize.cached():
        out += [m.weight is m.weight]
    out += [m.weight is m.weight, numbers(copy.deepcopy(m).weight)]
    parametrize.remove_parametrizations(m, "weight")
    out += [numbers(m.weight), type(m).__name__, list(m.state_dict()), isinstance(m.weight, nn.Parameter)]
    out += [
        failure(parametrize.register_parametrization, m, "weight", Wider()),
        failure(parametrize.register_parametrization, m, "absent", Double()),
        failure(parametrize.remove_parametrizations, m, "weight"),
    ]
    w = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    old = {"weight_g": torch.ones(2, 1), "weight_v": torch.eye(2), "bias": torch.zeros(2)}
    out += [list(w.state_dict()), repr(w.load_state_dict(old)), numbers(w.weight)]
    v = nn.utils.weight_norm(nn.Linear(2, 2))
    out += [
        list(v.state_dict()),
        list(nn.utils.remove_weight_norm(v).state_dict()),
        failure(nn.utils.remove_weight_norm, v),
    ]
    s = nn.utils.spectral_norm(nn.Linear(2, 2))
    out += [list(s.state_dict()), sorted(nn.utils.remove_spectral_norm(s).state_dict())]
    return out


@scenario
def older_spectral_norm(torch):
    """State dicts from before the vector v was kept, which have the normalised weight instead."""
    nn = torch.nn
    s = nn.utils.spectral_norm(nn.Linear(2, 3, bias=False))
    original = torch.tensor([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]])
    u = torch.nn.functional.normalize(torch.tensor([1.0, 0.3, 0.7]), dim=0)
    old = {"weight_orig": original, "weight": original / 2.5, "weight_u": u}
    out = [repr(s.load_state_dict(dict(old))), numbers(s.weight_v), numbers(s.weight_u)]
    out += [numbers(s.eval()(torch.ones(1, 2)))]
    for name in old:
        rest = {k: v for k, v in old.items() if k != name}
        out += [failure(s.load_state_dict, rest), repr(s.load_state_dict(rest, strict=False))]
    present = {k: v.clone() for k, v in s.state_dict().items()}
    out += [repr(s.load_state_dict(present))]
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
    out = [
        repr(m),
        repr(m[0].weight),
        failure(lambda: m[0].weight.shape),
        failure(lambda: m[0].weight * 2)[0],
    ]
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
        failure(nn.Dropout, 1.5),
        failure(nn.GroupNorm, 2, 3),
        failure(nn.Embedding, 3, 2, padding_idx=5),
        failure(nn.Embedding.from_pretrained, torch.ones(3)),
        failure(nn.BatchNorm2d(3), x),
        failure(nn.BatchNorm1d(3), torch.ones(1, 3)),
        failure(nn.InstanceNorm1d(3, affine=True), torch.ones(2, 4, 5)),
        failure(nn.Conv2d, 3, 4, 2, groups=2),
        failure(nn.Conv2d, 4, 3, 2, groups=2),
        failure(nn.Conv2d, 3, 4, 2, stride=2, padding="same"),
        failure(nn.Conv2d, 3, 4, 2, groups=0),
        failure(nn.ConvTranspose2d, 3, 4, 2, padding_mode="reflect"),
        failure(nn.ConvTranspose1d(1, 1, 3, 2), torch.ones(1, 1, 3), [20]),
        failure(nn.LSTM, 3, 0),
        failure(nn.LSTM, 3, 4, dropout=2),
        failure(nn.GRU, 3, 4, proj_size=2),
        failure(nn.LSTM, 3, 4, proj_size=4),
        failure(nn.RNN, 3, 4, nonlinearity="no"),
        failure(nn.LSTM(3, 4), torch.ones(2, 2, 5)),
        failure(nn.LSTM(3, 4), torch.ones(2, 2, 2, 3)),
        failure(nn.GRU(3, 4), torch.ones(2, 2, 3), torch.ones(1, 1, 4)),
        failure(nn.LSTMCell(3, 4), torch.ones(2, 2, 3)),
        failure(nn.MultiheadAttention, 5, 2),
        failure(nn.MultiheadAttention(4, 2), x, x, x),
        failure(nn.MultiheadAttention, 0, 1),
        failure(nn.Transformer(4, 2, 1, 1, 4), torch.ones(2, 1, 4), torch.ones(2, 2, 4)),
        failure(nn.TransformerEncoderLayer, 4, 2, activation="no"),
        failure(nn.Softmax2d(), x),
        failure(nn.Unflatten, 1, 3.0),
        failure(nn.Hardtanh, 2.0, 1.0),
        failure(nn.MultiMarginLoss, 3),
        failure(nn.TripletMarginLoss, -1.0),
        failure(nn.MSELoss(reduction="no"), x, x),
        failure(nn.FractionalMaxPool2d, 2),
        failure(nn.FractionalMaxPool2d, 2, output_ratio=1.5),
        failure(F.glu, torch.ones(3, 3)),
        failure(F.embedding_bag, torch.ones(3, dtype=torch.int64), x),
        failure(F.gaussian_nll_loss, x, x, -x),
        failure(F.cosine_embedding_loss, x, x, torch.ones(2, 2)),
        failure(F.interpolate, torch.ones(1, 1, 2)),
        failure(F.interpolate, torch.ones(1, 1, 2), 3, 2.0),
        failure(F.interpolate, torch.ones(1, 1, 2), 3, align_corners=True),
        failure(F.local_response_norm, x, 2),
        failure(F.dropout1d, torch.ones(3)),
        failure(F.poisson_nll_loss, x, x, reduction="no"),
        failure(nn.AdaptiveLogSoftmaxWithLoss, 4, 5, [3, 2]),
        failure(nn.Module().forward, 1),
        failure(nn.Bilinear, 0, 1, 1),
    ]


@scenario
def masks_that_are_not_in_memory(torch):
    bias = importlib.import_module(f"{torch.__name__}.nn.attention.bias")
    causal_lower_right, causal_upper_left = bias.causal_lower_right, bias.causal_upper_left
    q, k = torch.arange(24.0).view(1, 1, 4, 6).sin(), torch.arange(36.0).view(1, 1, 6, 6).cos()
    product = torch.nn.functional.scaled_dot_product_attention
    answers = [product(q, k, k, attn_mask=mask(4, 6)) for mask in (causal_lower_right, causal_upper_left)]
    try:
        product(q, k, k, attn_mask=causal_lower_right(4, 6), is_causal=True)
    except ValueError as error:
        answers.append(str(error))
    return [*answers, causal_upper_left(2, 3)._materialize(), str(causal_lower_right(2, 3))]
