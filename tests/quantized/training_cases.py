"""Training for a quantisation: observers, rounded values and their gradients, and linear layers with rounded weight."""

from tests.golden.answers import expressions

SETUP = """
import copy, io
Q = torch.ao.quantization
def numbers(*shape, start=0):
    count = 1
    for n in shape:
        count *= n
    return (((torch.arange(count) * 37 + start * 11) % 23 - 11).float() / 8).reshape(shape)
def seen(observer, *inputs):
    for x in inputs:
        observer(x)
    scale, zero = observer.calculate_qparams()
    return [scale, zero.tolist(), observer.min_val, observer.max_val, observer.quant_min, observer.quant_max]
def grad(f, x):
    x = x.clone().requires_grad_()
    y = f(x)
    y.sum().backward()
    return [y, x.grad]
a, b, c = numbers(3, 4), numbers(3, 4, start=5) * 2, numbers(3, 4, start=2) - 3
T = torch.tensor
"""
_TENSOR = ("torch.per_tensor_affine", "torch.per_tensor_symmetric")
_CHANNEL = ("torch.per_channel_affine", "torch.per_channel_symmetric")
_OBSERVERS = [
    f"seen(Q.{name}(dtype={dtype}, qscheme={scheme}{more}), a, b, c)"
    for names, schemes in (
        (("MinMaxObserver", "MovingAverageMinMaxObserver"), _TENSOR),
        (("PerChannelMinMaxObserver", "MovingAveragePerChannelMinMaxObserver"), _CHANNEL),
    )
    for name in names
    for scheme in schemes
    for dtype in ("torch.quint8", "torch.qint8")
    for more in (
        "",
        ", quant_min=0, quant_max=100" if "uint8" in dtype else ", quant_min=-127, quant_max=127",
    )
]
_MORE = [
    "seen(Q.MinMaxObserver(reduce_range=True), a)",
    "seen(Q.MinMaxObserver(reduce_range=True, quant_min=0, quant_max=255), a)",
    "seen(Q.PerChannelMinMaxObserver(ch_axis=1), a, b)",
    "seen(Q.MovingAverageMinMaxObserver(averaging_constant=0.5), a, b, c)",
    "seen(Q.default_weight_observer(), a)",
    "seen(Q.default_per_channel_weight_observer(), a)",
    "seen(Q.default_observer(), a)",
    "seen(Q.MinMaxObserver(), torch.empty(0), a)",
    "[x.tolist() for x in Q.MinMaxObserver().calculate_qparams()]",
    "[o(a) is a for o in [Q.MinMaxObserver()]]",
    "[(o(a), o.reset_min_max_vals(), seen(o, b))[2] for o in [Q.MinMaxObserver()]]",
    "[sorted(o.state_dict()) for o in [Q.MinMaxObserver(), Q.PerChannelMinMaxObserver(), Q.FakeQuantize()]]",
    "[(o(a), p.load_state_dict(o.state_dict()), p.min_val)[2] for o, p in "
    "[(Q.PerChannelMinMaxObserver(), Q.PerChannelMinMaxObserver())]]",
    "!Q.MinMaxObserver(qscheme=torch.per_channel_affine)",
    "!Q.PerChannelMinMaxObserver(qscheme=torch.per_tensor_affine)",
    "Q.MinMaxObserver(quant_min=3, quant_max=9)",
    "Q.NoopObserver()(a)",
    "torch.fake_quantize_per_tensor_affine(a, 0.1, 3, 0, 15)",
    "torch.fake_quantize_per_tensor_affine(a, T([0.1]), T([3], dtype=torch.int32), 0, 15)",
    "torch.fake_quantize_per_tensor_affine(a.double(), 0.25, 0, -4, 4)",
    "torch.fake_quantize_per_tensor_affine(T([float('inf'), -1e9, 0.5, -0.5]), 0.2, 1, -8, 7)",
    "torch.fake_quantize_per_channel_affine(a, T([0.1, 0.2, 0.3]), T([0, 1, 2], dtype=torch.int32), 0, -4, 7)",
    "torch.fake_quantize_per_channel_affine(a, T([0.1, 0.2, 0.3, 0.5]), T([0, 1, 2, 0], dtype=torch.int32), 1, -4, 7)",
    "grad(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 15), a)",
    "grad(lambda x: torch.fake_quantize_per_channel_affine(x, T([0.1, 0.2, 0.3]), T([0, 1, 2], dtype=torch.int32), 0, -4, 7), a)",
    "torch.fake_quantize_per_tensor_affine(a, 0.1, 30, 0, 15)",
    "torch.fake_quantize_per_channel_affine(a, T([0.1]), T([0], dtype=torch.int32), 0, -4, 7)",
    "[(q(a), q(b), grad(q, c))[2] + [q.scale, q.zero_point.tolist()] for q in [Q.FakeQuantize(quant_min=0, quant_max=255)]]",
    "[grad(q, c) + [q.scale] for q in [Q.default_per_channel_weight_fake_quant(), Q.default_weight_fake_quant(), "
    "Q.default_fake_quant()]]",
    "[(q(a), q.disable_observer(), q(b), q.disable_fake_quant(), q(b), q.scale)[2:6:2] for q in [Q.default_weight_fake_quant()]]",
    "[(q(a), q.apply(Q.disable_fake_quant), q(a))[2] for q in [Q.default_weight_fake_quant()]]",
    "[(p.load_state_dict(q.state_dict()), p(a))[1] for q in [Q.default_per_channel_weight_fake_quant()] for _ in [q(a)] "
    "for p in [Q.default_per_channel_weight_fake_quant()]]",
    "[sorted(type(c().activation).__name__ for c in [lambda: Q.QConfig(1, 2)])]",
    "Q.QConfig(Q.MinMaxObserver(), 1)",
    "Q.get_default_qconfig('tpu')",
    "Q.get_default_qconfig(version=3)",
    "type(Q.get_default_qconfig().weight()).__name__, type(Q.get_default_qat_qconfig('qnnpack', 0).weight()).__name__",
    "torch.ao.nn.qat.Linear(4, 2)",
    "torch.ao.nn.qat.Linear.from_float(torch.nn.Linear(4, 2))",
    "torch.ao.nn.qat.Linear.from_float(torch.nn.Bilinear(4, 2, 3))",
]
_LAYER = """
def layer(qconfig):
    m = torch.nn.Linear(4, 3)
    with torch.no_grad():
        m.weight.copy_(a)
        m.bias.copy_(numbers(3))
    m.qconfig = qconfig
    q = torch.ao.nn.qat.Linear.from_float(m)
    x = b.clone().requires_grad_()
    y = q(x)
    (y * y).sum().backward()
    return [q.weight is m.weight, y, x.grad, q.weight.grad, q.bias.grad, q.to_float().weight, sorted(q.state_dict())]
"""
_LAYERS = [
    "layer(Q.QConfig(Q.default_fake_quant, Q.default_weight_fake_quant))",
    "layer(Q.QConfig(Q.default_fake_quant, Q.default_per_channel_weight_fake_quant))",
    "layer(Q.get_default_qat_qconfig(version=0))",
    "layer(Q.get_default_qconfig())",
]
CASES = expressions(SETUP + _LAYER, [*_OBSERVERS, *_MORE, *_LAYERS])
