"""Products of float8 matrices with scales: values in each dtype of the result, and what PyTorch refuses on a CPU."""

SETUP = """
from torch.nn import functional as F
from torch.nn.functional import ScalingType as T, SwizzleType as W
a, b, f = torch.float8_e4m3fn, torch.float8_e5m2, torch.float32
half, bf = torch.float16, torch.bfloat16
def r(*sizes, d=4):
    n = torch.Size(sizes).numel()
    return ((torch.arange(n) * 37 % 23 - 11).float() / d).reshape(sizes)
m, n, one, two = r(4, 8).to(a), r(8, 6, d=8).to(a), torch.tensor(0.5), torch.tensor(0.25)
rows, columns, bias, three = r(4, 1).abs() + 0.25, r(1, 6).abs() + 0.5, r(6), torch.tensor(3.0)
S = torch._scaled_mm
whole, row = (T.TensorWise, T.TensorWise), (T.RowWise, T.RowWise)
def scaled(x, y, s, t, kinds=whole, **options):
    return F.scaled_mm(x, y, s, kinds[0], t, kinds[1], **options)
def refusal(call):
    try:
        call()
    except RuntimeError as error:
        return str(error)
"""
_KINDS = ("a", "b", "f", "half", "bf", "torch.float64", "torch.int8")
CASES = [f"S(m, n, one, two, out_dtype={kind}), S(m, n, one, two, bias, out_dtype={kind})" for kind in _KINDS]
CASES += [
    f"S(m, n, rows, columns, bias, three, {kind}, True), S(m, n, one, two, None, three, {kind})"
    for kind in _KINDS
]
CASES += [
    f"S(m, n, one, two, bias.to({kind}), out_dtype=f)"
    for kind in ("half", "bf", "torch.float64", "torch.int32")
]
CASES += [
    *(f"S(r(4, 8).to({x}), r(8, 6).to({y}), one, two)" for x in ("a", "b", "f") for y in ("a", "b", "bf")),
    "S(m, n, one, two, scale_result=three), S(m, n.t().contiguous().t(), one, two)",
    "S(input=m, mat2=n, scale_a=torch.full((1,), 2.0), scale_b=torch.full((1, 1), 0.5))",
    "S(m * m, n * n, torch.tensor(1e4), one, out_dtype=a), S(m, n, torch.tensor(1e6), one, out_dtype=b)",
    "S(m[:1], n, rows[:1], columns), S(m, n[:, :1], rows, columns[:, :1])",
    "S(m[:, :0], n[:0], one, two, bias, out_dtype=f), S(m[:0], n, one, two), S(m, n[:, :0], one, two)",
    "S(m, n, one, two, bias.reshape(1, 6), out_dtype=f)",
    "torch.func.vmap(lambda x: S(x, n, one, two, out_dtype=f))(torch.stack([m, m.flip(0)]))",
    "o = torch.empty(4, 6); S(m, n, one, two, out=o) is o, o",
    "o = torch.empty(0, dtype=bf); S(m, n, one, two, out_dtype=bf, out=o) is o, o",
    "S(m, n, one, two, out_dtype=f, out=torch.empty(4, 6, dtype=a))",
    "torch.ops.aten._scaled_mm.default(m, n, one, two, out_dtype=bf)",
    "y = S(m, n, one.clone().requires_grad_(), two, out_dtype=f); y.requires_grad, refusal(y.sum().backward)",
    "y = scaled(m, n, one, two, bias=bias.requires_grad_()); y.requires_grad, refusal(y.sum().backward)",
    # Refused.
    "S(m, n, rows, one)", "S(m, n, one, columns)", "S(m, n, rows[:, 0], columns[0])", "S(m, n, rows.t(), columns)",
    "S(m, n, r(4, 2)[:, ::2], columns)", "S(m, n, one.double(), two)", "S(m, n, 0.5, two)", "S(m, n, one, one[None, None, None])",
    "S(m, m, one, two)", "S(m[0], n, one, two)", "S(m, n[0], one, two)", "S(m, n[None], one, two)",
    "S(m, n, one, two, bias[:5])", "S(m, n, one, two, bias.reshape(6, 1))", "S(m, n, one, two, bias.to(a), out_dtype=f)",
    "S(m, n, one, two, scale_result=rows)", "S(m, n, one, two, scale_result=three.double())",
    # The public function.
    *(f"scaled(m, n, one, two, bias=bias, output_dtype={kind})" for kind in (*_KINDS, "None")),
    *(f"scaled(m, n, rows, columns, row, output_dtype={kind})" for kind in (*_KINDS, "None")),
    "scaled(m, n, one, two), scaled(m, n, [one], [two], ([T.TensorWise], T.TensorWise), swizzle_a=W.NO_SWIZZLE)",
    "scaled(m, n, one, two, contraction_dim=(1, 0)), scaled(m, n, one, two, contraction_dim=[-1, -2], use_fast_accum=True)",
    "scaled(m[:, :0], n[:0], one, two, bias=bias), scaled(m[:0], n, one, two)",
    "scaled(m, n, r(8, 1).abs()[::2], columns, row), scaled(m, n, one, two, swizzle_a=W.SWIZZLE_32_4_4)",
    "torch._scaled_mm_v2(m, n, [one], [0], [], [two], [0], [], bias, f)",
    "o = torch.empty(0); torch._scaled_mm_v2(m, n, [rows], [1], [], [columns], [1], [], None, None, out=o) is o, o",
    "scaled(m, n, one, two, swizzle_a=W.NO_SWIZZLE, swizzle_b=W.SWIZZLE_32_4_4)",
    "scaled(m, n, one, columns, (T.TensorWise, T.RowWise))", "scaled(m, n, rows, columns)",
    "scaled(m, n, rows, columns, (T.BlockWise1x32, T.BlockWise1x32))",
    "scaled(m, n, [one, one], two, ([T.TensorWise] * 2, T.TensorWise))",
    "scaled(r(4, 8), n, one, two)", "scaled(m, n, one.double(), two)", "scaled(m, n, one, two, (None, T.TensorWise))",
    "scaled(m, n, one, two, (0, 0))", "!scaled(m, n, 1.0, two)", "scaled(m[0], n, one, two)", "scaled(m, n[None], one, two)",
    "scaled(m, m, one, two)", "scaled(m, n, one, two, bias=bias[:5])", "scaled(m, n, one, two, bias=bias.double())",
    "scaled(m, n, one, two, contraction_dim=(1,))", "scaled(m, n, one, two, contraction_dim=(1, 1))",
    "scaled(m, m, one, two, contraction_dim=(1, 1))", "scaled(m, n, rows[:3], columns, row)",
    "scaled(m, n, rows.t(), columns, row)",
    "scaled(m, n, rows, columns[:, :5], row)", "scaled(m, n, rows, r(1, 12)[:, ::2], row)",
    "scaled(m, n, r(4, 2)[:, ::2], columns, row)",
    "scaled(m, n, rows, columns.t(), row)", "!scaled(m, n, rows, columns[0], row)",
]  # fmt: skip
