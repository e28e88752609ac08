"""Expressions whose answers under real PyTorch are kept in pointwise.json: what OpInfo samples do not look at.

Each is Python run with `torch` and the names of `SETUP`; the last line's value is the answer. Strides, aliasing, special
values, promotion corners and the texts of errors.
"""

SETUP = """
import math
n, inf = math.nan, math.inf
x = torch.arange(12, dtype=torch.float32).reshape(3, 4) - 5
y = torch.linspace(-2, 2, 4)
i = torch.arange(-6, 6).reshape(3, 4)
b = torch.tensor([True, False, True, True])
z = torch.complex(x, x.flip(0))
s = torch.tensor([n, inf, -inf, 0.0, -0.0, 1.0, -1.0, 1e-45, 3e38])
def grad(f, *v):
    v = [t.clone().requires_grad_() for t in v]
    return torch.autograd.grad(f(*v).sum(), v)
def grad2(f, v):
    v = v.clone().requires_grad_()
    g, = torch.autograd.grad(f(v).pow(2).sum(), v, create_graph=True)
    return torch.autograd.grad((g * g).sum(), v)[0]
"""

_SPECIAL = ("exp log sqrt rsqrt tanh erf sigmoid sign sgn abs floor ceil round trunc frac relu isnan isinf isfinite isposinf "
            "isneginf signbit nan_to_num reciprocal square log1p expm1 sin atan asinh lgamma digamma erfc erfinv exp2 log2 log10 "
            "sinc logit angle").split()
_SECOND = ("exp log1p sin tanh sigmoid erf atan asinh sinc square nn.functional.silu nn.functional.gelu nn.functional.softplus "
           "nn.functional.mish nn.functional.elu nn.functional.logsigmoid nn.functional.hardswish nn.functional.softsign").split()

CASES = [f"torch.{name}(s)" for name in _SPECIAL]
CASES += [f"grad2(torch.{name}, torch.linspace(0.3, 1.9, 5))" for name in _SECOND]
CASES += [
    "grad2(lambda v: torch.nn.functional.gelu(v, approximate='tanh'), torch.linspace(-2, 2, 5))",
    # layout of results
    "torch.exp(x.t())", "x.t() + x.t()", "x.t() + y[:3]", "x[:, ::2] * 2", "x[:, :1] + y", "x.t() + i.t()", "x[:0] * y",
    "torch.where(x.t() > 0, x.t(), 0)", "x.expand(2, 3, 4) + 1", "x.t().clone()", "x[:, ::2].clone()", "x.t().double()",
    "torch.rand(2, 3, 4, 5).permute(0, 3, 1, 2).neg().stride()",
    # promotion
    "x + 1", "i + 1.5", "b + 1", "b + True", "b * 2.5", "i / 2", "i // 2", "i % -3", "i.fmod(-4)", "x + i", "x.double() + y",
    "torch.tensor(2.0, dtype=torch.float64) * x", "x * torch.tensor(2)", "i * torch.tensor(2.5)", "i + torch.tensor(2, dtype=torch.uint8)",
    "x.half() * 3", "x.half() + y", "x.half() * torch.tensor(3.0)", "x.bfloat16() + x.half()", "i.to(torch.uint8) + i.to(torch.int8)",
    "x + 1j", "x.double() * 1j", "x.half() + torch.tensor(1.0, dtype=torch.float64)", "i ** 2", "i ** 2.0", "2 ** i.abs()", "2.0 ** i", "x ** 2",
    "torch.maximum(i, torch.tensor(2.5))", "torch.where(b, 1, 2.5)", "torch.where(b, i[0], 1.5)", "torch.add(x, y, alpha=2)", "i.add(i, alpha=3)",
    "torch.eq(i, 2.5)", "b == 1", "x > torch.tensor(1, dtype=torch.float64)", "i & 3", "b & True", "i << 2", "i >> 1", "~b", "~i", "-i",
    "torch.clamp(i, min=-2.5)", "torch.clamp(i, -2, 2)", "torch.clamp(x, min=y)", "torch.clamp(x, y, y - 1)", "1 - x", "1 / x[0]", "5 // (i[1] + 9)",
    "5 % (i[2] + 9)", "2 - i", "True + x", "torch.exp(i)", "torch.sqrt(b)", "torch.atan2(i, i)", "torch.float_power(i, 2)", "torch.true_divide(i, i + 20)",
    "torch.lerp(x, x + 1, 0.25)", "torch.xlogy(0, s)", "torch.square(b)", "torch.rsub(x, 1, alpha=2)", "torch.ldexp(x, i)", "torch.copysign(i, -1)",
    # values at 16 bits
    "(x.bfloat16() * 0.1)", "(x.half() + 0.1)", "(x.bfloat16() / 3)", "torch.div(x.half() * 3.3, 0.7, rounding_mode='trunc')",
    "torch.nextafter(s.half(), torch.tensor(1.0).half())", "torch.nn.functional.gelu(x.bfloat16())",
    # special values of two operands
    "torch.maximum(s, s.flip(0))", "torch.minimum(s, s.flip(0))", "torch.fmax(s, s.flip(0))", "torch.fmin(s, s.flip(0))",
    "torch.clamp(s, 0, 1)", "torch.clamp(s, n, 1)", "torch.pow(s, 0.5)", "torch.pow(s, 2)", "torch.pow(s, 0)", "torch.pow(s, -1)", "torch.pow(s, 3.0)",
    "torch.remainder(s, 2)", "torch.fmod(s, 2)", "torch.div(s, 2, rounding_mode='floor')", "torch.floor_divide(s, 0.3)", "torch.atan2(s, s.flip(0))",
    "torch.hypot(s, s.flip(0))", "torch.logaddexp(s, s.flip(0))", "torch.heaviside(s, torch.tensor(0.5))", "torch.copysign(s, s.flip(0))",
    "torch.isclose(s, s, equal_nan=True)", "torch.isclose(s, s.flip(0))", "torch.nan_to_num(s, 1.0, 2.0, 3.0)", "torch.frexp(s[3:])",
    "torch.gcd(i, i + 6)", "torch.lcm(i, i + 7)", "i.bitwise_left_shift(70)", "i.bitwise_right_shift(70)", "torch.pow(i, torch.tensor(-1))",
    "z.abs()", "z.angle()", "z.sgn()", "z.conj() * z", "z / z.conj()", "z.exp()", "z.log()", "z.sqrt()", "z.reciprocal()", "z == z.real", "torch.isreal(z)",
    # in place, and views
    "t = torch.zeros(3, 4); t.t()[1].add_(5); t", "t = torch.zeros(4, 4); t[::2, 1:3].copy_(x[:2, :2]); t", "t = x.clone(); t[:, 1].exp_(); t",
    "t = x.clone(); t.t().mul_(torch.arange(3)); t", "t = x.clone(); t[t > 0] = 0; t", "t = i.clone(); t.add_(2); t.mul_(3); t.floor_divide_(2); t",
    "t = z.clone(); t.real.zero_(); t", "t = z.clone(); t.imag.fill_(2); t", "torch.view_as_real(z).stride()", "torch.view_as_complex(torch.ones(3, 2))",
    "t = torch.zeros(2, 2); torch.add(x[:2, :2], 1, out=t); t", "t = x.clone(); torch.relu_(t); t", "t = x.clone(); torch.nn.functional.elu_(t); t",
    "t = x.clone(); torch.nn.functional.silu(t, inplace=True); t", "t = x.clone(); t /= 2; t", "t = i.clone(); t <<= 1; t", "t = x.clone(); t.clamp_(-1, 1); t",
    "t = torch.zeros(3); t.fill_(torch.tensor(2)); t", "t = torch.zeros(3, dtype=torch.int64); t.copy_(y[:3]); t", "t = x.clone(); t.lerp_(t + 1, 0.5); t",
    "t = x.clone(); t.masked_fill_(b, 9); t", "torch.positive(x).data_ptr() == x.data_ptr()", "t = x.clone().requires_grad_(); (t * 1).relu_().sum().backward(); t.grad",
    "t = y.clone().requires_grad_(); u = t * 2; u[1:3].exp_(); u.sum().backward(); t.grad", "t = y.clone().requires_grad_(); u = t + 0; u.sin_(); u.sum().backward(); t.grad",
    # gradients at corners
    "grad(torch.abs, s)", "grad(torch.sqrt, y.abs())", "grad(lambda a: a.clamp(-1, 1), y)", "grad(torch.maximum, y, y.flip(0))", "grad(torch.maximum, y, y)",
    "grad(lambda a: a ** 0, y)", "grad(lambda a: a ** 2, y)", "grad(torch.pow, y.abs() * 0, y)", "grad(lambda a: 2 ** a, y)", "grad(lambda a, c: torch.where(b, a, c), y, y)", "grad(torch.atan2, y * 0, y)", "grad(torch.hypot, y, y)", "grad(lambda a: a.masked_fill(b, 2), y)",
    "grad(torch.xlogy, y * 0, y.abs())", "grad(lambda a: torch.nn.functional.softplus(a, 2, 1), y)", "grad(torch.nn.functional.prelu, x, torch.tensor([0.25]))",
    "grad(lambda a: torch.nn.functional.hardtanh(a, -1, 1), y)", "grad(torch.remainder, y, y + 3)", "grad(torch.nn.functional.glu, x)", 
    "grad(lambda a: torch.addcdiv(a, a, a * a + 1, value=2), y)", "grad(lambda a: (a.to(torch.complex64) * 1j).abs(), y)", "grad(torch.copysign, y, -y)",
    "grad(lambda a: torch.view_as_real(torch.polar(a, a)), y)", "grad(torch.logaddexp, y, y.flip(0))", "grad(lambda a: a.bfloat16().float(), y)",
    # errors
    "torch.add(x, torch.ones(5))", "b - b", "-b", "torch.exp('a')", "i.exp_()", "i.add_(1.5)", "torch.add(i, i, alpha=1.5)", "i ** -1",
    "i // 0", "i % 0", "torch.fmod(i, 0)", "torch.div(x, 2, rounding_mode='up')", "torch.clamp(x)", "z < z", "z.floor()", "torch.sign(z)", "torch.atan2(z, z)",
    "torch.maximum(z, z)", "torch.bitwise_and(x, x)", "torch.polygamma(-1, x)", "torch.isclose(x, i)", "torch.imag(x)", "torch.view_as_complex(x)", "torch.view_as_real(x)",
    "torch.complex(x, x.double())", "torch.frexp(i)", "torch.nn.functional.prelu(x, torch.ones(3))", "torch.nn.functional.glu(torch.ones(3))", "torch.positive(b)",
    "torch.nn.functional.silu(i)", "torch.nn.functional.gelu(x, approximate='q')", "torch.mvlgamma(x, 0)", "bool(x)", "torch.addcdiv(i, i, i)", "torch.igamma(z, z)",
    "x.requires_grad_().add_(1)", "x.masked_fill(i, 1)", "torch.add(x, y, out=torch.zeros(3, 4, dtype=torch.int64))", "torch.lerp(i, i, 0.5)",
]
