"""Expressions whose answers under real PyTorch are kept in structure.json: reductions, indexing and views.

Each is Python run with `torch` and the names of `SETUP`; statements are separated by "; ", the last one's value is the
answer. They look at what OpInfo samples do not: every form of index, aliasing, strides, in-place on views, error texts,
gradients through chains of views, special values.
"""

SETUP = """
import math
import numpy as np
x = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4)
v = torch.arange(6)
m = torch.arange(12).reshape(3, 4) % 5
b = torch.tensor([True, False, True])
i = torch.tensor([0, 2, -1])
w = torch.tensor([3.0, math.nan, -1.0, math.inf, 2.0, math.nan])
def grad(f, *v):
    v = [t.clone().requires_grad_() for t in v]
    out = f(*v)
    k = torch.arange(out.numel(), dtype=out.dtype).reshape(out.shape) + 1
    return torch.autograd.grad((out * k).sum(), v)
def grad2(f, v):
    v = v.clone().requires_grad_()
    g, = torch.autograd.grad(f(v).pow(3).sum(), v, create_graph=True)
    return torch.autograd.grad((g * g).sum(), v)[0]
"""

INDEXES = ["0", "-1", "1:", "::2", "...", "None", "()", "0, 1", "0, 1, 2", ":, 1", "..., -1", "..., None", "None, 0, ..., None", ":, 1:3, ::3",
           "True", "False", "i[:1] % 2", "[0, 1]", "[[0, 1]]", "[1, 0], [2, 2]", ":, i", ":, b", "..., [0, 3]", "0, i", "[0], :, [1]", "i % 2, ..., 1",
           "x > 5", "b.repeat(2)[:2]", ":, b, 1", "torch.tensor(1)", "torch.tensor(1), :, torch.tensor([0, 3])", "np.array([1, 0])", "np.int64(1)",
           "torch.tensor(True)", "torch.tensor([], dtype=torch.long)", "[]", "..., ...", "5:9", "-9:9", "slice(None, None, 3)", "range(2)", "(0, [1, 2])",
           "None, None, [1]", "[True, False]", "0, b", ":, :, i, None", ":, None, i"]
BAD_INDEXES = ["2", "-3", "0, 3", "0, 0, 0, 0", "::0", "::-1", "'a'", "1.0", "b", "[2]", "[0, 1], [0, 1, 2]", "x.double() > 5, 0"]

INDEXING = ([f"x[{k}]" for k in INDEXES] + [f"x[{k}]" for k in BAD_INDEXES]
            + [f"y = x.clone(); y[{k}] = -1; y" for k in INDEXES]
            + [f"y = x.clone(); y[{k}] = torch.tensor(7.5); y" for k in ("0", ":, i", "x > 5", "..., 1", "()")]
            + [f"grad(lambda t: t[{k}], x)" for k in ("0", "..., 1", ":, i", "i % 2, ..., 1", "x > 5", "[1, 1, 0]", ":, 1:, ::2")] + [
    "y = x.clone(); y[0, 1:] = torch.arange(4); y",
    "y = x.clone(); y[:, i] = torch.arange(4.); y",
    "y = x.clone(); y[0] = torch.ones(1, 1, 1, 4); y",
    "y = x.clone(); y[0] = torch.ones(5); y",
    "y = x.clone(); y[[0, 0], [0, 0]] += 1; y",
    "y = x.clone(); y.t()[0] = 1",
    "y = m.clone(); y.t()[1] = 9; y",
    "y = m.clone(); y[y > 2] = 0; y",
    "y = m.clone(); y[1] = 2.7; y",
    "y = m.clone(); y[torch.tensor([0, 2])] = torch.tensor([1., 2., 3., 4.]); y",
    "torch.tensor(3.)[0]",
    "torch.tensor(3.)[...]",
    "torch.tensor(3.)[None]",
    "y = torch.tensor(3.); y[()] = 4; y",
    "grad(lambda t, u: t.index_put((i,), u, accumulate=True), m.float(), torch.ones(3, 4))",
    "grad(lambda t, u: t.index_put((torch.tensor([0, 1]),), u), m.float(), torch.ones(2, 4))",
    "grad2(lambda t: t[:, i] * t[:, 1:2], x)",
    "y = x.clone().requires_grad_(); z = y * 1; z[0, 1:] = z[1, :2] * 2; z.sum().backward(); y.grad",
    "y = x.clone().requires_grad_(); z = y * 1; z[:, i] = 3.; z.sum().backward(); y.grad",
    "y = x.clone().requires_grad_(); z = y * 1; z[0].mul_(y[1]); z.pow(2).sum().backward(); y.grad",
    "y = torch.zeros(3); y.index_add_(0, torch.tensor([0, 0, 2]), torch.tensor([1., 2., 3.])); y",
    "y = torch.zeros(2, 3); y.t().scatter_(0, torch.tensor([[2, 1]]), 5.); y",
    "y = torch.zeros(2, 3); y.scatter_(1, torch.tensor([[2], [0]]), torch.ones(2, 1)); y",
    "y = m.clone(); y[:, ::2].index_fill_(0, torch.tensor([1]), -1); y",
    "x.gather(1, torch.tensor([[[5]]]))",
    "x.index_select(0, torch.tensor([2]))",
    "x.index_select(3, torch.tensor([0]))",
    "x.take(torch.tensor([-1, 23, 0]))",
    "m.nonzero()",
    "m.nonzero(as_tuple=True)",
    "torch.tensor(1).nonzero()",
    "x.masked_select(x > 20)",
    "m.float().masked_scatter(m > 2, torch.arange(12.))",
    "list(x[0, 0])",
])

REDUCTION = [
    "x.sum(dtype=torch.float64)", "m.sum()", "b.sum()", "x.sum((0, -1), keepdim=True)", "x.sum(())", "x.sum(dim=(1, 1))", "x.sum(3)",
    "torch.zeros(0, 3).sum(0)", "torch.zeros(0, 3).mean(0)", "torch.zeros(0, 3).amax(0)", "torch.zeros(0).max()", "m.mean()",
    "torch.zeros(0).prod()", "w.max()", "w.min(0)", "w.argmax()", "w.amin()", "w.nansum()", "w.nanmean()", "w.median()", "w.nanmedian(0)",
    "w.sort()", "w.sort(descending=True)", "w.topk(2)", "w.cummax(0)", "w.cumsum(0)", "w.logsumexp(0)", "w.unique()", "w.mode()",
    "torch.tensor([2, 1, 2, 1]).mode()", "torch.max(m, 1)", "torch.max(m, torch.tensor(2))", "m.max(dim=1, keepdim=True).indices",
    "x.max(1).values.stride()", "x.std()", "x.std(1)", "x.std(1, False)", "x.std(1, unbiased=False)", "x.var(correction=2)", "x[:1, :1, :1].var()",
    "torch.var_mean(x, 0)", "m.var()", "x.norm()", "x.norm(1, -1)", "x.norm(dim=(0, 1))", "torch.linalg.vector_norm(x, float('inf'), (0, 2))",
    "torch.tensor([True, False]).all()", "torch.tensor([2, 0], dtype=torch.uint8).any()", "x.argmax(1, keepdim=True)", "x.aminmax()",
    "m.cumsum(1)", "m.cumsum(1, dtype=torch.float16)", "y = m.clone(); y.cumsum_(0); y", "b.cumsum(0)", "x.diff()", "m.kthvalue(2)",
    "x.quantile(0.3)", "x.quantile(torch.tensor([.25, .5]), 1, interpolation='nearest')", "m.bincount()", "v.bincount(minlength=8)",
    "torch.histc(x, 4)", "torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([[0, 3], [5, 6]]), right=True)",
    "torch.bucketize(3, torch.tensor([1, 3, 5]))", "torch.unique(m, return_inverse=True, return_counts=True)", "torch.unique(m, dim=0)",
    "torch.unique_consecutive(torch.tensor([1, 1, 2, 1]), return_counts=True)", "torch.isin(m, torch.tensor([1, 3]))",
    "out = torch.empty(0); torch.sum(x, 0, out=out); out", "torch.sort(m, stable=True, dim=0).values.stride()", "x.sum(axis=1, keepdims=True).shape",
    "m.topk(9)", "x.softmax(-1).sum()", "grad(lambda t: t.prod(), torch.tensor([2., 0., 3.]))", "grad(lambda t: t.prod(0), torch.tensor([[2., 0.], [0., 3.]]))",
    "grad(lambda t: t.max(), torch.tensor([2., 5., 5.]))", "grad(lambda t: t.max(0)[0], torch.tensor([2., 5., 5.]))", "grad(lambda t: t.std(1), x)",
    "grad(lambda t: t.norm(), torch.zeros(3))", "grad(lambda t: t.norm(3, 0), x)", "grad(lambda t: t.cumprod(0), torch.tensor([2., 0., 3., 4.]))",
    "grad(lambda t: t.logsumexp((0, 1)), x)", "grad(lambda t: t.sort(descending=True)[0], x)", "grad(lambda t: t.median(), torch.tensor([1., 2., 2., 3.]))",
    "grad2(lambda t: t.cumsum(0).prod(1), x[0] / 9 + .5)", "grad2(lambda t: t.var(0), x)", "grad2(lambda t: t.amax(0), x)",
    "y = x.clone().requires_grad_(); s = (y * 1).sum(0); z = y * 1; t = z.sum(); z.add_(1); t.backward(); y.grad",
]

VIEW = [
    "x.view(6, 4).stride()", "x.view(-1, 2).shape", "x.view(5, -1)", "x.view(-1, -1)", "x.transpose(0, 1).view(-1)", "x.transpose(0, 1).reshape(-1)",
    "x.view(torch.int32).dtype", "x.view(torch.float64).shape", "x.view(torch.int16).shape", "x[..., :3].view(torch.float64)", "x.view(2, -1, 0)",
    "torch.zeros(0, 3).view(-1)", "torch.zeros(0, 3).view(3, 0).stride()", "x.permute(2, 0, 1).stride()", "x.permute(0, 0, 1)", "x.permute(0, 1)",
    "x.expand(5, 2, 3, 4).stride()", "x.expand(3, 3, 4)", "x[:, :1].expand(-1, 7, -1).shape", "x.squeeze(0).shape", "x[:1].squeeze().shape",
    "x.unsqueeze(-1).stride()", "x.unsqueeze(4)", "x.transpose(0, 3)", "m.t().stride()", "x.t()", "x.T.shape", "x.mT.stride()", "x.movedim(0, -1).shape",
    "x.movedim((0, 1), (1, 2)).stride()", "x.flatten(1).shape", "x.flatten(2, 1)", "x.unflatten(2, (2, -1)).shape", "x.unflatten(2, (3, -1))",
    "[t.shape for t in x.split(2, 1)]", "[t.storage_offset() for t in x.chunk(2, 2)]", "[t.shape for t in v.tensor_split((1, 4))]", "x.split([1, 1], 1)",
    "[t.stride() for t in x.unbind(1)]", "x.narrow(1, 1, 2).storage_offset()", "x.narrow(1, 2, 2)", "x.select(1, 3)", "x.diagonal(1, 0, 2).stride()",
    "x.unfold(2, 2, 1).stride()", "x.unfold(2, 5, 1)", "x.as_strided((2, 2), (1, 2), 3)", "x.as_strided((9, 9), (4, 1))", "x.as_strided((2,), (-1,))",
    "y = x.clone(); y.view(-1)[5] = 99; y", "y = x.clone(); y.transpose(0, 2)[1].zero_(); y", "y = x.clone(); y.unbind(1)[1].fill_(9); y",
    "y = x.clone(); y.diagonal(0, 1, 2).add_(100); y", "y = x.clone(); y.unfold(2, 2, 2)[..., 0] = 0; y", "y = x.clone(); y.chunk(2, 1)[1].neg_(); y",
    "y = x.clone(); y.squeeze_().transpose_(0, 1); y.stride()", "y = x.clone(); y.unsqueeze_(0); y.shape", "y = m.clone(); y.t_(); y",
    "x.contiguous() is x", "x.transpose(0, 1).contiguous().stride()", "x.view(24).data_ptr() == x.data_ptr()", "x[1].data_ptr() - x.data_ptr()",
    "x.flip(0, 2)", "x.roll(1, 0)", "x.roll((1, 2), (0, 2))", "x.rot90(1, (0, 2)).shape", "x.repeat(2, 1, 1, 1).shape", "x.tile(2).shape",
    "x.repeat_interleave(2, 1).shape", "v.repeat_interleave(v)", "torch.cat([m, m.float()], 1).dtype", "torch.cat([x, torch.zeros(0)]).shape",
    "torch.cat([x, x[0]])", "torch.cat([x, x[:, :2]], 0)", "torch.stack([m, m.t()])", "torch.stack([v, v], -1).stride()", "torch.hstack([v, v])",
    "m.tril(-1)", "x.triu(1)", "torch.tril_indices(3, 3)", "torch.broadcast_tensors(v, m[:, :1])[1].stride()", "torch.broadcast_shapes((3, 1), (2,))",
    "torch.meshgrid(v[:2], v[:3], indexing='xy')[0]", "torch.cartesian_prod(v[:2], v[:2])", "torch.combinations(v[:3])", "torch.block_diag(v[:2], m)",
    "torch.kron(v[:2], m)", "v[:3].diag()", "m.diag(1)", "torch.diag_embed(v[:2], 1)", "m.trace()", "x.sum_to_size(3, 1)", "x.sum_to_size(5)",
    "torch.atleast_2d(v, torch.tensor(1))[1].shape", "m.cov()", "torch.select_scatter(m, torch.zeros(4, dtype=torch.long), 0, 1)",
    "torch.unravel_index(torch.tensor([5, 11]), (3, 4))", "grad(lambda t: t.as_strided((3, 3), (1, 1)), torch.arange(6.))",
    "grad(lambda t: t.unfold(0, 3, 1), torch.arange(6.))", "grad(lambda t: t.unbind(1)[1], x)", "grad(lambda t: t.split(2, 1)[1].t(), m.float())",
    "grad(lambda t: t.expand(3, 4)[1:].transpose(0, 1).diagonal(), torch.arange(4.))", "grad(lambda t: t.repeat(2, 3), m.float())",
    "grad(lambda t: t.view(-1)[::2].reshape(3, 2).flip(0), m.float())", "grad2(lambda t: t.unfold(0, 2, 1) * t[:-1, None], torch.arange(4.))",
    "y = x.clone().requires_grad_(); z = y * 1; z.view(-1)[::3].mul_(5); (z * z).sum().backward(); y.grad",
    "y = x.clone().requires_grad_(); z = y * 1; u = z[0]; u.t()[1].zero_(); u.sum().backward(); y.grad",
    "y = x.clone().requires_grad_(); y[0].zero_()", "y = x.clone(); u = y[0]; u.add_(1); y._version",
    "y = x.clone().requires_grad_(); z = y * 1; s = z.view(-1); t = s * 2; z.add_(1); t.sum().backward(); y.grad",
]

CASES = {"indexing": INDEXING, "reduction": REDUCTION, "view": VIEW}
