"""Numbers that an element type does not hold: where PyTorch refuses them, and where they wrap round or become infinite."""

SETUP = """
F = torch.nn.functional
m = torch.tensor([True, False])
i = torch.tensor([0])
def ones(d):
    return torch.ones(2, dtype=getattr(torch, d))
def square(d):
    return torch.ones(2, 2, dtype=getattr(torch, d))
def refused(f):
    try:
        return f().shape
    except Exception as error:
        return type(error).__name__
def assigned(d, at, v):
    x = ones(d)
    x[at] = v
    return x
"""

_FUNCTIONS = {
    "full": "torch.full((2,), {v}, dtype=torch.{d})",
    "fill_": "ones({d!r}).fill_({v})",
    "full_like": "torch.full_like(ones({d!r}), {v})",
    "new_full": "ones({d!r}).new_full((2,), {v})",
    "clamp below": "ones({d!r}).clamp(min={v})",
    "clamp above": "ones({d!r}).clamp(max={v})",
    "masked_fill": "ones({d!r}).masked_fill(m, {v})",
    "index_fill": "ones({d!r}).index_fill(0, i, {v})",
    "scatter": "ones({d!r}).scatter(0, i, {v})",
    "fill_diagonal_": "torch.ones(2, 2, dtype=torch.{d}).fill_diagonal_({v})",
    "where": "torch.where(m, ones({d!r}), {v})",
    "threshold": "F.threshold(ones({d!r}), 1, {v})",
    "add": "ones({d!r}) + {v}",
    "mul_": "ones({d!r}).mul_({v})",
    "eq": "ones({d!r}) == {v}",
    "lt": "ones({d!r}) < {v}",
    "list": "torch.tensor([{v}], dtype=torch.{d})",
    "number": "torch.tensor({v}, dtype=torch.{d})",
    "item": "assigned({d!r}, 0, {v})",
    "mask": "assigned({d!r}, m, {v})",
    "linspace": "torch.linspace(0, {v}, 2, dtype=torch.{d})",
    "isin": "torch.isin(ones({d!r}), {v})",
}
_NUMBERS = [
    ("uint8", "300"), ("uint8", "-1"), ("uint8", "-300"), ("uint8", "1e9"), ("int8", "200"), ("int32", "2**40"),
    ("int32", "1.5e10"), ("int64", "2**63"), ("int64", "1e20"), ("int64", "float('nan')"), ("float32", "1e300"),
    ("float32", "2**63"), ("float32", "float('inf')"), ("float16", "1e6"), ("float16", "-1e9"), ("bfloat16", "1e300"),
    ("float64", "2**63"), ("bool", "5"),
]  # fmt: skip
# Factors, limits and exponents: each has to fit the elements, or the type in which PyTorch computes.
_FACTORS = {
    "alpha of add": "torch.add(ones({d!r}), ones({d!r}), alpha={v})",
    "alpha of add_": "ones({d!r}).add_(1, alpha={v})",
    "alpha of sub": "torch.sub(ones({d!r}), ones({d!r}), alpha={v})",
    "rsub": "{v} - ones({d!r})",
    "addcmul": "torch.addcmul(ones({d!r}), ones({d!r}), ones({d!r}), value={v})",
    "addcdiv_": "ones({d!r}).addcdiv_(ones({d!r}), ones({d!r}), value={v})",
    "lerp": "torch.lerp(ones({d!r}), ones({d!r}), {v})",
    "pow": "ones({d!r}) ** {v}",
    "logit": "torch.logit(ones({d!r}), {v})",
    "leaky_relu": "F.leaky_relu(ones({d!r}), {v})",
    "elu": "F.elu(ones({d!r}), {v})",
    "celu": "F.celu(ones({d!r}), {v})",
    "softplus": "F.softplus(ones({d!r}), {v})",
    "softplus threshold": "F.softplus(ones({d!r}), 1, {v})",
    "hardshrink": "F.hardshrink(ones({d!r}), {v})",
    "softshrink": "F.softshrink(ones({d!r}), {v})",
    "threshold limit": "F.threshold(ones({d!r}), {v}, 2)",
    "hardtanh": "F.hardtanh(ones({d!r}), 0, {v})",
    "beta of addmm": "torch.addmm(square({d!r}), square({d!r}), square({d!r}), beta={v})",
    "alpha of addmv": "torch.addmv(ones({d!r}), square({d!r}), ones({d!r}), alpha={v})",
    "beta of addr": "torch.addr(square({d!r}), ones({d!r}), ones({d!r}), beta={v})",
    "index_add": "ones({d!r}).index_add(0, i, ones({d!r})[:1], alpha={v})",
    "scatter_": "ones({d!r}).scatter_(0, i, {v})",
    "trapezoid": "torch.trapezoid(ones({d!r}), dx={v})",
}
_FACTOR_NUMBERS = [
    ("uint8", "300"), ("int8", "2**31"), ("int32", "2**40"), ("int64", "-1"), ("float32", "1e40"), ("float32", "1+2j"),
    ("float32", "0.5"), ("float16", "1e5"), ("float16", "2**63"), ("bfloat16", "1e40"), ("bfloat16", "float('nan')"),
    ("bool", "-1"), ("bool", "2**63"),
]  # fmt: skip
# What PyTorch takes for another number, or refuses for the type of the elements.
_LEFT_OUT = {("isin", "int64", "2**63")}

_GRID = [
    text.format(d=d, v=v)
    for name, text in _FUNCTIONS.items()
    for d, v in _NUMBERS
    if (name, d, v) not in _LEFT_OUT
]
_GRID += [
    text.format(d=d, v=v)
    for name, text in _FACTORS.items()
    for d, v in _FACTOR_NUMBERS
    if (name, v) != ("softshrink", "1+2j")  # refused by the parser here, with another class of error
]
# Complex numbers for elements of every kind: a real type holds those without an imaginary part, bool all of them.
_COMPLEX = [
    text.format(d=d, v=v)
    for text in (
        _FUNCTIONS["full"],
        _FUNCTIONS["full_like"],
        _FUNCTIONS["new_full"],
        _FUNCTIONS["fill_"],
        "torch.scalar_tensor({v}, dtype=torch.{d})",
        "torch.constant_pad_nd(ones({d!r}), (1, 0), {v})",
        "torch.empty(0, dtype=torch.{d}).new_full((0,), {v})",
    )
    for d in ("float32", "float16", "int64", "uint8", "bool", "complex64")
    for v in ("1+2j", "2+0j", "1j", "complex('inf')")
]
_POWERS = [
    f"torch.tensor([2.0, 0.5, 1.0], dtype=torch.{d}) ** {v}"
    for d in ("float32", "float64", "complex64")
    for v in ("1e40", "-1e40", "2**63", "complex(1e40, 0)")
]
# A norm of the order NaN is NaN, unless at most one element is reduced. What checks its order refuses NaN.
_ORDERS = [
    text.format(v=v)
    for text in (
        "torch.linalg.vector_norm(torch.tensor([2.0, 1.0]), {v})",
        "torch.linalg.vector_norm(torch.tensor([[2.0, 1.0]]), {v}, 0)",
        "torch.linalg.vector_norm(torch.tensor([[2.0, 1.0]]), {v}, 1, True)",
        "torch.linalg.vector_norm(torch.tensor([2.0 + 1j, 1.0]), {v})",
        "torch.linalg.vector_norm(torch.zeros(0), {v})",
        "torch.linalg.vector_norm(torch.zeros(2, 0), {v}, 1)",
        "torch.tensor([2.0, 1.0]).double().norm({v})",
        "torch.norm(torch.tensor([2.0, 1.0]).half(), {v})",
        "torch.linalg.norm(torch.ones(2, 2), {v})",
        "torch.dist(torch.tensor([2.0, 1.0]), torch.zeros(2), {v})",
        "F.normalize(torch.tensor([[2.0, 1.0]]), {v})",
        "F.pairwise_distance(torch.tensor([[2.0, 1.0]]), torch.zeros(1, 2), {v})",
        "torch.renorm(torch.ones(2, 2), {v}, 0, 1.0)",
        "torch.renorm(torch.ones(2, 2), 2, 0, {v})",
        "torch.cdist(torch.ones(1, 2), torch.zeros(1, 2), {v})",
        "F.pdist(torch.eye(2), {v})",
    )
    for v in ("float('nan')", "0.5")
]
_OTHERS = [
    "torch.tensor([2], dtype=torch.uint8) ** -1",
    "torch.pow(torch.tensor([2.0]), 1e40, out=torch.zeros(1))",
    "torch.tensor([2.0]).pow_(-1e40)",
    "torch._foreach_pow([torch.tensor([2.0])], 1e40)",
    "torch.pow(torch.tensor([2.0], requires_grad=True), 1e40)",
    "F.rrelu(ones('float32'), 1, 0.5)",
    "F.rrelu(ones('float32'), 0, float('inf'))",
    "torch.tensor(1e300), torch.tensor(-1e39), torch.as_tensor(1e300)",
    "torch.tensor([2**63, 1])",
    "torch.tensor([2**63, -1])",
    "torch.tensor([2**64], dtype=torch.float64)",
    "torch.tensor(2**64 - 1, dtype=torch.uint64)",
    "torch.tensor([-(2**63) - 1])",
    "torch.ones(2) + 2**64",
    "torch.full((1,), torch.finfo(torch.float16).min, dtype=torch.float16)",
    # A single element of 16 bits takes a number that is too large as infinity, and several refuse it.
    "torch.zeros((), dtype=torch.float16).fill_(-1e5), torch.zeros(1, 1, dtype=torch.bfloat16).fill_(1e39)",
    "torch.zeros(3, dtype=torch.float16)[1].fill_(10**9), torch.nn.init.constant_(torch.zeros(1).half(), -1e9)",
    "torch.full((), 1e5, dtype=torch.float16), torch.scalar_tensor(-1e39, dtype=torch.bfloat16)",
    "torch.full_like(torch.zeros(1).half(), 1e5), torch.zeros(2).half().new_full((1, 1), -(10**9))",
    "torch.zeros(3).half().fill_(1e5)",
    "torch.zeros(0).half().fill_(1e5)",
    "torch.zeros(1, dtype=torch.int8).fill_(300)",
    "torch.zeros(()).fill_(1e39)",
    "torch.zeros(1).half().masked_fill(torch.tensor(True), 1e5)",
    "torch.full((1,), 1e5 + 0j, dtype=torch.float16)",
    "torch.zeros(2).bfloat16().masked_fill(m, torch.finfo(torch.bfloat16).min)",
    "torch.ones(3).select(2**64, 0)",
    "torch.ones(3).expand(2, 2**64)",
    "torch.zeros(2**64)",
    "[x := [], x.append(x), torch.tensor(x)]",
    "[x := [1], x.__setitem__(0, x), torch.as_tensor(x)]",
    "torch.ones(1).expand(2**62, 4)",
    "torch.ones(0).view(2**62, 4, 0)",
    "torch.empty(2**62, 4, 0)",
    "torch.empty(2**62, 2, 0).shape",
    "torch.ones(4).narrow(0, 2**63 - 1, 2)",
    "torch.ones(4).narrow(0, 1, 2**63 - 1)",
    "torch.bincount(torch.tensor([2**63 - 1]))",
    "torch.ones(4)[::2**62]",
    "torch.ones(2).repeat(2**62, 4)",
    "refused(lambda: torch.ones(1).expand(2**62).clone())",
    "refused(lambda: torch.ones(3, 4)[torch.zeros(1, dtype=torch.int64).expand(2**61)])",
    "refused(lambda: torch.ones(3).take(torch.zeros(1, dtype=torch.int64).expand(2**62)))",
    "refused(lambda: F.embedding(torch.zeros(1, dtype=torch.int64).expand(2**61), torch.ones(3, 4)))",
    "refused(lambda: F.pad(torch.ones(4), (2**62, 2**62)))",
    "refused(lambda: torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.ones(1), size=(1, 2**62)).to_dense())",
]
CASES = _GRID + _COMPLEX + _POWERS + _ORDERS + _OTHERS
