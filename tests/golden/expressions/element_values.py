"""Values of elements that C++ leaves undefined, and PyTorch defines: integers that overflow, and bools of any byte."""

SETUP = """
kinds = torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64
def ends(kind):
    least, most = torch.iinfo(kind).min, torch.iinfo(kind).max
    return torch.tensor([least, least + 1, most, most - 1, 3, most // 2 + 7], dtype=kind)
def each(f):
    return [f(ends(kind)) for kind in kinds]
long = ends(torch.int64)
wide = torch.stack([long.roll(i) for i in range(70)])
m = torch.tensor([0, 1, 2, 255, 0, 128], dtype=torch.uint8).view(torch.bool)
f = torch.arange(6.0)
"""

CASES = [
    "each(lambda x: x + x.flip(0))",
    "each(lambda x: x - x.flip(0))",
    "each(lambda x: x * x.flip(0))",
    "each(lambda x: torch.add(x, x, alpha=7))",
    "each(lambda x: torch.sub(x, x.flip(0), alpha=5))",
    "each(lambda x: -x)",
    "each(lambda x: x.abs())",
    "each(lambda x: x.square())",
    "each(lambda x: x ** 3)",
    "each(lambda x: torch.addcmul(x, x, x.flip(0), value=3))",
    "each(lambda x: torch.lcm(x, x.flip(0)))",
    "each(lambda x: x // -1)",
    "each(lambda x: torch.remainder(x, torch.full_like(x, -1)))",
    "each(lambda x: x.cumsum(0))",
    "each(lambda x: x.cumprod(0))",
    "each(lambda x: x.sum())",
    "each(lambda x: x.prod())",
    "each(lambda x: torch.dot(x, x.flip(0)))",
    "each(lambda x: torch.mv(torch.stack([x] * 40), x))",
    "each(lambda x: torch.mv(torch.stack([x] * 40, 1).T.contiguous().T.T, x))",
    "each(lambda x: torch.outer(x, x.flip(0)))",
    "each(lambda x: torch.mm(torch.stack([x, x.flip(0), x.roll(1)]), torch.stack([x, x.roll(2)], 1)))",
    "each(lambda x: torch.mm(torch.stack([x] * 70), torch.stack([x.roll(i) for i in range(70)], 1)))",
    "each(lambda x: torch.addmm(torch.outer(x, x), torch.outer(x, x), torch.outer(x, x.flip(0)), beta=3, alpha=5))",
    "each(lambda x: torch.bmm(torch.stack([x, x]).reshape(2, 2, 3), torch.stack([x, x]).reshape(2, 3, 2)))",
    "each(lambda x: torch.linalg.cross(x[:3], x[3:]))",
    "each(lambda x: torch.zeros_like(x).scatter_add(0, torch.tensor([0, 0, 0, 1, 1, 2]), x))",
    "each(lambda x: x.clone().scatter_reduce(0, torch.tensor([0, 0, 0, 1, 1, 2]), x, 'prod'))",
    "each(lambda x: x.index_add(0, torch.tensor([0, 0, 0, 1, 1, 2]), x, alpha=2))",
    "each(lambda x: x.index_put((torch.tensor([0, 0, 2]),), x[2:5], accumulate=True))",
    "each(lambda x: x.index_reduce(0, torch.tensor([0, 0, 0, 1, 1, 2]), x, 'prod'))",
    "each(lambda x: x << 3)",
    "each(lambda x: torch.diff(x))",
    "torch.nn.functional.avg_pool1d(long[None], 3, 1)",
    "torch.nn.functional.avg_pool2d(wide[None], 3, 1)",
    "wide.sum(0), wide.sum(1), wide.prod(0), wide.prod(1), wide.cumsum(0), wide.t().cumprod(1)",
    "torch.arange(2**63 - 10, 2**63 - 1, 4)",
    "torch.trace(wide[:6]), torch.einsum('ij,ik->jk', wide, wide)",
    "m.tolist(), m[2].item(), bool(m[3])",
    "m.long(), m.float(), m.to(torch.int8), m.to(torch.complex64), m.half(), m.double()",
    "m.sum(), m.any(), m.all(), m[1:4].all(), m.count_nonzero(), m.cumsum(0), m.prod(), m.max()",
    "m & True, m & m.flip(0), m | m.flip(0), m ^ True, ~m, m == True, m != m.flip(0), m < True",
    "m.logical_not(), torch.logical_and(m, m.flip(0)), torch.logical_xor(m, m.flip(0))",
    "m + m, m * m, f * m, f + m, torch.maximum(m, m.flip(0))",
    "f[m], f[m.view(2, 3).view(-1)], f.view(2, 3)[m.view(2, 3)]",
    "m.nonzero().tolist(), torch.nonzero(m.view(2, 3), as_tuple=True), torch.argwhere(m).tolist()",
    "f.masked_select(m), f.masked_fill(m, 9.0), f.masked_scatter(m, -f), torch.where(m, f, -f)",
    "f.index_put((m,), torch.tensor(7.0))",
    "m.unique(), m.unique_consecutive(), torch.unique(m.view(3, 2), dim=0), m.sort().values",
    "torch.nn.functional.scaled_dot_product_attention(f.view(1, 6, 1), f.view(1, 6, 1), f.view(1, 6, 1), m.expand(6, 6))",
    "m.view(2, 3).any(0), m.view(2, 3).all(1), m.view(2, 3).t().contiguous().long(), m[::2].long(), m.flip(0).long()",
]
