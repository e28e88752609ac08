"""torch.autograd.functional and gradcheck: products, whole matrices, strict mode and errors."""

from tests.golden.answers import expressions

SETUP = """
A = torch.autograd.functional
x = torch.tensor([1.0, 2.0])
y = torch.tensor([3.0, 4.0])
w = torch.tensor([[1.0, -1.0], [0.5, 2.0]])
cube = lambda v: (v**3).sum()
pair = lambda v, w: (v**3 * w).sum()
both = lambda v, w: (v * w, v.sum())
xd = x.double().requires_grad_()
wd = w.double().requires_grad_()
z = torch.tensor([1 + 2j, -0.5 + 1j], dtype=torch.complex128, requires_grad=True)
G = torch.autograd.gradcheck
GG = torch.autograd.gradgradcheck
def grad_through(f, v):
    v = v.clone().requires_grad_()
    out = f(v)
    out = out if isinstance(out, torch.Tensor) else out[1]
    return torch.autograd.grad((out * out).sum(), v)[0]
class Wrong(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a):
        return a * 2
    @staticmethod
    def backward(ctx, g):
        return g * 3
class Broken(Wrong):
    @staticmethod
    def forward(ctx, a):
        return a.sum()
    @staticmethod
    def backward(ctx, g):
        return g * torch.tensor([float("nan"), 1.0])
import torch.autograd.forward_ad as fw
def dual(f, primal, tangent):
    with fw.dual_level():
        out = fw.unpack_dual(f(fw.make_dual(primal, tangent)))
    return out.primal.detach(), out.tangent
def anomaly(f, **options):
    import warnings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            with torch.autograd.detect_anomaly(**options):
                f(x.clone().requires_grad_()).backward()
            text = "nothing raised"
        except RuntimeError as error:
            text = str(error)
    return text, [w.message.args[0].splitlines()[0] for w in caught]
class Noisy(Wrong):
    @staticmethod
    def backward(ctx, g):
        return g * (2 + 1e-9 * torch.rand(1, dtype=torch.float64))
"""
_products = [
    f"A.{name}({f}, {inputs})"
    for name, f, inputs in (
        ("vjp", "lambda v: v * 2", "x"),
        ("vjp", "lambda v: v * 2", "x, torch.ones(3)"),
        ("vjp", "lambda v: v * 2", "x, (x, x)"),
        ("vjp", "lambda v: [v * 2]", "x, x"),
        ("vjp", "lambda v: (v * 2, 3)", "x, x"),
        ("vjp", "lambda v: v * 2", "[1], x"),
        ("vjp", "lambda v: y * 2", "x, x"),
        ("vjp", "lambda v: y * 2", "x, x, strict=True"),
        ("vjp", "lambda v, w: v * 2", "(x, y), x, strict=True"),
        ("vjp", "lambda v, w: v * 2", "(x, y), x"),
        ("vjp", "both", "(x, y), (x, y.sum())"),
        ("vjp", "lambda v: v.detach().requires_grad_() * 2", "x, x, strict=True"),
        ("vjp", "lambda v: w @ v", "x, y"),
        ("jvp", "lambda v: v**2", "x"),
        ("jvp", "cube", "x[:1]"),
        ("jvp", "lambda v: v**2", "x, y"),
        ("jvp", "lambda v: v * 2", "x, y, strict=True"),
        ("jvp", "lambda v: y * 2", "x, y"),
        ("jvp", "lambda v: y * 2", "x, y, strict=True"),
        ("jvp", "both", "(x, y), (x, x)"),
        ("jvp", "lambda v: w @ v.exp()", "x, y"),
        ("vhp", "cube", "x, y"),
        ("vhp", "lambda v: v**3", "x, y"),
        ("vhp", "cube", "x"),
        ("vhp", "pair", "(x, y), (x, y)"),
        ("vhp", "lambda v: (v, v)", "x, y"),
        ("hvp", "cube", "x, y"),
        ("hvp", "pair", "(x, y), (x, y)"),
        ("hvp", "lambda v: v.sum()", "x, y"),
        ("hvp", "lambda v: v.sum()", "x, y, strict=True"),
        ("hvp", "lambda v: y.sum()", "x, y, strict=True"),
        ("hvp", "lambda v: y.sum()", "x, y"),
        ("hvp", "cube", "x, torch.ones(3)"),
        ("jacobian", "both", "(x, y)"),
        ("jacobian", "lambda v: y", "x"),
        ("jacobian", "lambda v: y", "x, strict=True"),
        ("jacobian", "lambda v, w: v", "(x, y), strict=True"),
        ("jacobian", "lambda v: v * 2", "x, create_graph=True, strict=True"),
        ("jacobian", "lambda v: v**2", "x, strategy='forward-mode'"),
        ("jacobian", "lambda v: v**2", "x, strategy='forward-mode', vectorize=True"),
        ("jacobian", "lambda v: v**2", "x, vectorize=True, strict=True"),
        ("jacobian", "lambda v: v**2", "x, vectorize=True"),
        ("jacobian", "lambda v: v**2", "x, strategy='x'"),
        ("jacobian", "lambda v: v**2", "x, strategy='forward-mode', vectorize=True, create_graph=True"),
        ("jacobian", "lambda v: v**2", "x, strategy='forward-mode', vectorize=True, strict=True"),
        ("jacobian", "lambda v: w @ v", "torch.ones(2, 3)"),
        ("jacobian", "lambda v: v[:0]", "x"),
        ("vjp", "lambda v: (v.sum(), v.prod())", "x"),
        ("jvp", "lambda u, v: u.sum() * v.sum()", "(x[:1], y[:1])"),
        ("hessian", "cube", "x"),
        ("hessian", "lambda v: v**3", "x"),
        ("hessian", "pair", "(x, y)"),
        ("hessian", "lambda v: (v, v)", "x"),
        ("hessian", "lambda v: v.sum()", "x, strict=True"),
        ("hessian", "lambda v: v.sum() * 1", "x"),
        ("hessian", "cube", "x, vectorize=True, outer_jacobian_strategy='forward-mode'"),
        ("hessian", "cube", "x, outer_jacobian_strategy='z'"),
    )
]
_graphs = [
    "grad_through(lambda v: A.vjp(lambda u: u**3, v, y, create_graph=True), x)",
    "grad_through(lambda v: A.jvp(lambda u: u**3, v, y, create_graph=True), x)",
    "grad_through(lambda v: A.hvp(cube, v, y, create_graph=True), x)",
    "grad_through(lambda v: A.vhp(cube, v, y, create_graph=True), x)",
    "grad_through(lambda v: A.jacobian(lambda u: u**3, v, create_graph=True), x)",
    "grad_through(lambda v: A.hessian(cube, v, create_graph=True), x)",
    "A.jacobian(lambda u: u**3, x).requires_grad",
]
_checks = [
    "G(torch.sin, (xd,))",
    "G(lambda v: v.detach() * v, (xd,))",
    "G(torch.sin, (x,))",
    "G(lambda v: v.detach() * v, (xd,), fast_mode=True)",
    "G(lambda v: v.detach() * v, (xd,), raise_exception=False)",
    "G(lambda v: v.exp() * 2, (xd,), fast_mode=True)",
    "G(torch.mm, (wd, wd.detach().t().contiguous().requires_grad_()))",
    "G(lambda a, b: (a @ b, a.sum()), (wd, xd))",
    "G(lambda v: v.detach(), (xd,))",
    "G(Wrong.apply, (xd,))",
    "G(Wrong.apply, (xd,), raise_exception=False)",
    "G(Noisy.apply, (xd,))",
    "G(Noisy.apply, (xd,), nondet_tol=1e-6)",
    "G(lambda v: (v * v.conj()).real.sum(), (z,))",
    "G(lambda v: v * v, (z,))",
    "G(lambda v: v * v, (z,), fast_mode=True)",
    "G(lambda v: v.abs(), (z,))",
    "G(lambda v: torch.complex(v, v * v), (xd,))",
    "G(lambda v: (v.real * 2).detach() + v.real, (z,))",
    "G(lambda v: v.real.detach() * v.real, (z,))",
    "GG(lambda v: v**3, (xd,))",
    "GG(lambda v: v**3, (xd,), fast_mode=True)",
    "GG(lambda v: v * v, (z,))",
    "GG(lambda v: v.detach() * v * v, (xd,))",
    "GG(torch.mm, (wd, wd.detach().t().contiguous().requires_grad_()))",
    "G(lambda v: [], (xd,))",
    "G(lambda v: v.long(), (xd,))",
    "from torch.autograd.gradcheck import GradcheckError; issubclass(GradcheckError, RuntimeError)",
]
_anomalies = [
    "anomaly(lambda v: (torch.sqrt(v * 0) * 0).sum())",
    "anomaly(lambda v: (torch.sqrt(v * 0) * 0).sum(), check_nan=False)",
    "anomaly(lambda v: Broken.apply(v))",
    "anomaly(lambda v: v.log().sum())",
    "with_detection = torch.autograd.detect_anomaly(); with_detection.__enter__(); on = torch.is_anomaly_enabled(); "
    "with_detection.__exit__(None, None, None); [on, torch.is_anomaly_enabled()]",
    "torch.is_anomaly_check_nan_enabled()",
]
_duals = [
    *(
        f"dual(lambda v: {f}, {inputs})"
        for f, inputs in (
            ("v.sin()", "x, y"),
            ("w @ v", "x, y"),
            ("v.sum() * v", "x, y"),
            ("v.detach() * v", "x, y"),
            ("y", "x, y"),
            ("v", "x, y"),
            ("v[0] * torch.stack([v[1], v[0]])", "x, y"),
            ("v.exp()", "x, torch.ones(3)"),
            ("v.exp()", "x.long(), y"),
            ("torch.autograd.grad((v**3).sum(), v, create_graph=True)[0]", "x.clone().requires_grad_(), y"),
        )
    ),
    "fw.make_dual(x, y)",
    "level = fw.enter_dual_level(); fw.exit_dual_level(); level",
    "tuple(fw.unpack_dual(x))",
]
CASES = expressions(SETUP, [*_products, *_graphs, *_checks, *_anomalies, *_duals])
