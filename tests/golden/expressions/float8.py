"""float8: which operators compute, which only move, which refuse. `_` stands for the type."""

_EACH = """x == x|x != x|x == 1|x.ne(x)|x.eq(1)|x * x|x * y|x.abs()|abs(x)|x.isnan()|x.any()|x.all()|x.any(0)|m @ n
torch.mm(m, n)|F.pad(x, (1, 1))
x.clone()|x.float()|x.half()|x.to(torch.int32)|x.bool()|x[1:3]|x[torch.tensor([1, 2])]|x.view(torch.uint8)
torch.cat([x, x])|torch.stack([x, x])
torch.where(x.float() > 0, x, y)|x.clone().fill_(2)|torch.zeros_like(x)|torch.full((2,), 3.0, dtype=_)|x.tolist()
x[0].item()|x.clone().copy_(torch.ones(6))
x.index_select(0, torch.tensor([1]))|x.repeat(2)|x.split(2)|x.roll(1)|torch.tensor([1.0, 2.0], dtype=_)
torch.result_type(x, 1.0)
x.mul(x)|torch.isinf(w)|torch.isfinite(w)"""
_REFUSED = """x + x|x - x|x / x|-x|x * 2|x + 1|x < x|x.sum()|x.max()|x.mean()|x.exp()|x.relu()|x.round()|x.pow(2)
x.sort()|x.argmax()|x.cumsum(0)
x @ x|torch.equal(x, x)|torch.allclose(x, x)|torch.maximum(x, x)|x.unique()|x.median()|torch.topk(x, 2)"""
SETUP = """
from torch.nn import functional as F
a, b = torch.float8_e4m3fn, torch.float8_e5m2
def made(t):
    x = torch.tensor([1.0, 2.0, -3.0, 0.5, 448.0, 0.0]).to(t)
    y = torch.tensor([0.3, -1.5, 7.0, 0.1, 0.01, float('nan')]).to(t)
    return x, y, x.reshape(2, 3), x.reshape(3, 2), torch.tensor([1.0, float('nan')]).to(t)
"""
CASES = [
    f"x, y, m, n, w = made({kind}); {case.replace('_)', kind + ')') if 'dtype=_' in case else case}"
    for kind in ("a", "b")
    for case in _EACH.replace("\n", "|").split("|")
    if not (kind == "a" and "isinf" in case)
]
CASES += [
    f"!x, y, m, n, w = made({kind}); {case}"
    for kind in ("a", "b")
    for case in _REFUSED.replace("\n", "|").split("|")
]
CASES += ["!x, y, m, n, w = made(a); x + x.to(b)", "x, y, m, n, w = made(a); z = x.clone(); z.mul_(x); z"]
