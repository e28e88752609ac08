"""complex32: which operators compute, which only move, which refuse."""

SETUP = """
import io
c = torch.chalf
x = torch.tensor([1.5 + 2j, -3 + 0.25j], dtype=c)
y = torch.tensor([0.1 - 1j, 7j], dtype=c)
h = torch.tensor([1.5, -2.0], dtype=torch.half)
types = (torch.bool, torch.int64, torch.half, torch.bfloat16, torch.float, torch.double, torch.cfloat, c)
def saved(x):
    f = io.BytesIO()
    torch.save(x, f)
    f.seek(0)
    return torch.load(f)
"""
CASES = """x + y|x - y|x * y|x * 2|x + 1j|1 - x|torch.rsub(x, 2)|-x|x.abs()|abs(x)|x.sgn()|x.conj().resolve_conj()|x.conj_physical()
x == y|x != 0|x.isnan()|x.isinf()|x.isfinite()|x.isclose(x)|torch.allclose(x, y)|x.any()|x.all()|torch.addcmul(x, x, x, value=2)
x.add(y, alpha=2)|torch.sub(x, y, alpha=1j)|z = x.clone(); z.add_(y); z|z = x.clone(); z *= 2; z|x.positive()|x.diff()
h * 1j|h + 1j|h - 1j|h == 1j|h * x|h.bfloat16() * 1j|h * torch.tensor(1j)|h * torch.tensor(1j, dtype=torch.complex128)
x * torch.ones(2)|x * torch.ones(2, dtype=torch.int64)|x * torch.ones(2, dtype=torch.bfloat16)|x * torch.ones(2).double()
x.to(torch.complex64)|x.to(torch.float32)|x.half()|x.bool()|x.cdouble()|h.chalf()|torch.ones(2).to(c)
torch.ones(2, dtype=torch.int64).to(c)
x.real|x.imag|torch.view_as_real(x)|torch.view_as_complex(h.reshape(1, 2))|torch.complex(h, -h)|torch.complex(h, h[0])
torch.zeros(2, dtype=c)|torch.ones(2, dtype=c)|torch.full((2,), 3 + 1j, dtype=c)|torch.full((2,), 1e6, dtype=c)
torch.full((2,), 1e6j, dtype=c)
x.clone().fill_(1e6)|torch.zeros_like(x)|x.new_ones(2)|torch.tensor([1e6], dtype=c)|x.tolist()|x[0].item()|x[[1, 0]]|x[h > 0]
torch.cat([x, y])|torch.stack([x, y])|x.reshape(2, 1).T.contiguous()|x.roll(1)|x.repeat(2)|x.unfold(0, 1, 1)|x.masked_fill(h > 0, 1)
torch.where(h > 0, x, y)|torch.where(h > 0, h, 1j)|x.index_select(0, torch.tensor([1]))|torch.nn.functional.pad(x, (1, 1))
x.expand(2, 2).tril()|x.clone().copy_(torch.tensor([1j, 2.0]))|torch.zeros(2).copy_(x)|saved(x)
x.dtype.to_real(), torch.half.to_complex()
w = torch.ones(3); w.data = x; w|w = x.clone(); w.data = h; w|w = x.clone(); w.resize_(1); w|w = x.clone(); w.set_(y[1:]); w
x.type(), x.element_size(), x.untyped_storage().nbytes()|str(x)|torch.finfo(c).max, torch.finfo(c).eps|x.to('meta') + 1
torch.can_cast(c, torch.half), torch.can_cast(torch.half, c)|torch.result_type(h, 1j), torch.result_type(h.bfloat16(), 1j)
[torch.promote_types(c, d) for d in types]
torch.manual_seed(0); torch.rand(3, dtype=c)|torch.manual_seed(0); torch.randn(3, dtype=c)|x.isreal()
w = x.clone().requires_grad_(); (w * y).abs().float().sum().backward(); w.grad
w = x.clone().requires_grad_(); w.to(torch.cfloat).abs().sum().backward(); w.grad
w = h.clone().requires_grad_(); (w * 2j).imag.sum().backward(); w.grad"""
_REFUSED = """x / y|x.sum()|x.mean()|x.exp()|x.sqrt()|x.pow(2)|x.prod()|x.cumsum(0)|x @ y|x < y|x.sort()|x.max()|x.reciprocal()
torch.arange(3, dtype=c)|torch.linspace(0, 1, 3, dtype=c)|torch.polar(h, h)|x.masked_fill(h > 0, 1e6)|x.numpy()|h / 1j|x.sigmoid()
torch.maximum(x, y)|torch.ones(2, 2, dtype=c) @ torch.ones(2, 2, dtype=c)|torch.int64.to_complex()|x.random_()"""
CASES = [
    *CASES.replace("\n", "|").split("|"),
    *(f"!{case}" for case in _REFUSED.replace("\n", "|").split("|")),
]
