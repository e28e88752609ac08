"""Sparse tensors: making, describing, computing, their gradients, files."""

SETUP = """
import copy, io, pickle
i = torch.tensor([[0, 1, 1], [2, 0, 2]])
v = torch.tensor([3.0, 4.0, 5.0])
s = torch.sparse_coo_tensor(i, v, (2, 4))
c = s.coalesce()
d = torch.arange(8.0).reshape(2, 4)
u = torch.sparse_coo_tensor(torch.tensor([[0, 0, 1], [1, 1, 0]]), v, (2, 3))
h = torch.sparse_coo_tensor(torch.tensor([[0, 2]]), torch.arange(6.0).reshape(2, 3), (4, 3))
r = d.to_sparse_csr()
e = torch.sparse_coo_tensor(size=(2, 4))
w = torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0], [3.0, 0.0, -1.0]]).to_sparse_csr()
w3 = torch.tensor([[1.0, -2.0], [2.0, 3.0], [-3.0, 0.5]])
nan = float("nan")
b3 = torch.arange(1.0, 13.0).reshape(2, 2, 3)
kinds = torch.sparse_coo, torch.sparse_csr, torch.sparse_csc
def narrow():
    i = torch.tensor([0, 2, 3], dtype=torch.int32)
    return torch.sparse_csr_tensor(i, torch.tensor([0, 3, 2], dtype=torch.int32), v, (2, 4))
def grads(f, *leaves):
    for x in leaves:
        x.requires_grad_()
    out = f(*leaves)
    out = out.to_dense() if out.layout != torch.strided else out
    (out * torch.arange(1.0, out.numel() + 1).reshape(out.shape)).sum().backward()
    return [x.grad.to_dense() for x in leaves]
def saved(x, **options):
    f = io.BytesIO()
    torch.save(x, f)
    f.seek(0)
    return torch.load(f, **options)
def bag(**options):
    torch.manual_seed(0)
    m = torch.nn.Embedding(5, 3, sparse=True, **options)
    with torch.no_grad():
        m.weight.copy_(torch.arange(15.0).reshape(5, 3) / 10)
    return m
def trained(optimizer, steps=3, **options):
    m = bag()
    o = optimizer(m.parameters(), lr=0.1, **options)
    for _ in range(steps):
        o.zero_grad()
        m(torch.tensor([[1, 3], [3, 0]])).pow(2).sum().backward()
        o.step()
    return m.weight
"""

_REPRS = [
    "s",
    "c",
    "u",
    "h",
    "r",
    "e",
    "s.requires_grad_()",
    "s.double()",
    "s.int()",
    "r.sin()",
    "r.t()",
    "d.to_sparse_csc()",
]
_REPRS += ["d.to_sparse_bsr((1, 2))", "d.to_sparse_bsc((1, 2))", "r.double()", "s.bool()", "r.half()"]
_UNARY = [
    "-s",
    "abs(s)",
    "s.sqrt()",
    "s.sin()",
    "s.relu()",
    "s.round()",
    "s.log1p()",
    "s.isnan()",
    "s.tanh()",
    "s.sign()",
]
_UNARY += ["u.sqrt()", "r.tanh()", "torch.neg(u)", "s.floor()", "s.expm1()", "s.any()", "s.norm()"]
_UNARY += ["s.square()", "torch.square(u)", "torch.nan_to_num(s / 0 * 0, 2.0)"]
_REFUSED = [
    "s.exp()",
    "s.cos()",
    "s.mean()",
    "s.max()",
    "torch.softmax(s, 1)",
    "s[0:1]",
    "s.view(8)",
    "torch.ones_like(s)",
]
_REFUSED += [
    "s.squeeze()",
    "s == s",
    "torch.equal(s, s)",
    "s.cumsum(0)",
    "s.nonzero()",
    "s.unique()",
    "torch.var(s)",
]
_REFUSED += ["s.clone().fill_(1)"]

# torch.sparse.mm with a reduction; the second row of w is empty, and two products of the first are equal
_REDUCED = [
    *(
        f"torch.sparse.mm({operands}, {reduce!r})"
        for reduce in ("sum", "mean", "amax", "amin", "prod", "most")
        for operands in ("w, w3", "w.double(), w3.double()", "w.bfloat16(), w3.bfloat16()")
    ),
    *(
        f"grads(lambda a, b: torch.sparse.mm(a, b, {reduce!r}), w.clone(), w3.clone())"
        for reduce in ("sum", "mean", "amax", "amin")
    ),
    *(
        f"torch.sparse.mm(w, torch.tensor([[nan], [1.0], [2.0]]), {reduce!r})"
        for reduce in ("sum", "mean", "amax")
    ),
    "torch.sparse.mm(w, w3[:, :0], 'mean'), torch.sparse.mm(w, w3[:, :0], 'amax')",
    "torch.sparse.mm(torch.zeros(2, 3).to_sparse_csr(), w3, 'amin')",
    "torch.sparse.mm(w, w3, reduce='mean'), torch.sparse.mm(sparse=w, dense=w3)",
    "!torch.sparse.mm(w.to_sparse_coo(), w3, 'mean')",
    "torch.sparse.mm(w.to_sparse_csc(), w3, 'mean')",
    "!torch.sparse.mm(w.to_dense(), w3, 'mean')",
    "torch.sparse.mm(w, w3.to_sparse_csr(), 'mean')",
    "torch.sparse.mm(w, w3[:, 0], 'mean')",
    "torch.sparse.mm(w, w3[:2], 'mean')",
    "torch.sparse.mm(w, w3.double(), 'mean')",
    "torch.sparse.mm(torch.eye(3, dtype=torch.int64).to_sparse_csr(), w3.long(), 'mean')",
]
CASES = [
    *(f"repr({x})" for x in _REPRS),
    "s, c, u.coalesce(), h, e",
    "type(s), isinstance(s, torch.Tensor), s.is_sparse, s.is_sparse_csr, r.is_sparse, r.is_sparse_csr, s.layout, r.layout",
    "s.dtype, s.device, s.shape, s.numel(), s.dim(), s.sparse_dim(), s.dense_dim(), s._nnz(), s.requires_grad, "
    "s.is_leaf, s.grad",
    "h.sparse_dim(), h.dense_dim(), h._nnz(), len(s), r._nnz(), s.stride(), s.storage_offset(), s.is_contiguous()",
    "s.type(), s.itemsize, s.element_size(), s.is_floating_point(), torch.is_tensor(s), s.is_cpu, s.is_meta",
    "s.indices()",
    "s.values()",
    "c.indices(), c.values(), s._indices(), s._values()",
    "s.data_ptr()",
    "s.storage()",
    "s.untyped_storage()",
    "s.numpy()",
    "s.tolist()",
    "s.item()",
    "s.nbytes",
    "bool(s)",
    "u.to_dense(), h.to_dense(), e.to_dense(), r.to_dense()",
    "torch.sparse_coo_tensor(i, v)",
    "torch.sparse_coo_tensor([[0, 1], [1, 0]], [1, 2])",
    "torch.sparse_coo_tensor((2, 3))",
    "torch.sparse_coo_tensor(i, v[:2], (2, 4))",
    "torch.sparse_coo_tensor(i.float(), v, (2, 4))",
    "torch.sparse_coo_tensor(i, v, (2,))",
    "torch.sparse_coo_tensor(i, v, (2, 4), dtype=torch.float64)",
    "torch.sparse_coo_tensor(i, v, (2, 4), is_coalesced=True).is_coalesced()",
    "torch.sparse_coo_tensor(i[0], v)",
    "torch.sparse_coo_tensor(-i, v)",
    "torch.sparse_coo_tensor(i, torch.ones(3, 2), (2, 4, 3))",
    "torch.sparse_coo_tensor(i, v, (2, 2), check_invariants=True)",
    "torch.sparse_coo_tensor(-i, v, (2, 4), check_invariants=True)",
    "torch.sparse.check_sparse_tensor_invariants.is_enabled()",
    "w = torch.sparse.check_sparse_tensor_invariants(); w.__enter__(); x = w.is_enabled(); w.__exit__(None, "
    "None, None); x, w.is_enabled()",
    "s[0], s[1], s[0, 2], s[:, 2], h[2], h[2, 1], s[-1]",
    "s[2]",
    "list(s)",
    "s.select(1, 2), s.narrow_copy(1, 1, 3), s.unsqueeze(0), s.index_select(0, torch.tensor([1])), "
    "s.index_select(1, torch.tensor([2, 2]))",
    "s + s, s - s, c + c, s.add(s, alpha=3), s.sub(s, alpha=2), c + e",
    "s + 1",
    "s + d",
    "s + u",
    "d + s, d - s, d.add(s, alpha=2)",
    "s * 2, 2 * s, s * s, s * d, d * s, s / 2, s // 2, s ** 2, s.mul(s.double()), s * torch.tensor(3.0)",
    "s.div(2, rounding_mode='floor')",
    "s / d",
    "x = s.clone(); x.mul_(2); y = s.clone(); y.add_(s); z = d.clone(); z.add_(s, alpha=-0.5); w = s.clone(); "
    "w.zero_(); x, y, z, w",
    "x = s.clone(); x *= 3; x += s; x",
    *_UNARY,
    *(f"!{x}" for x in _REFUSED),
    "s.reshape(8)",
    "s.expand(2, 4)",
    "s.sum(), s.sum(0), s.sum(dim=1, keepdim=True), torch.sparse.sum(s), torch.sparse.sum(s, dim=0), "
    "torch.sparse.sum(s, dim=(0, 1))",
    "torch.sparse.sum(h, dim=1), torch.sparse.sum(h, dim=0), torch.sparse.sum(s, dim=0, dtype=torch.float64), r.sum()",
    "s.t(), s.transpose(0, 1), s.permute(1, 0), s.mT, s.T, c.t().is_coalesced()",
    "torch.sparse.mm(s, d.t()), s @ d.t(), s @ d[0], s.matmul(d.t()), torch.mm(s, d.t()), torch.mm(d, s.t()), "
    "torch.mv(s, d[0])",
    "s @ s.t(), torch.sparse.mm(s, s.t()), torch.sparse.mm(u, u.t())",
    "torch.sparse.mm(s, d)",
    "torch.sparse.addmm(torch.ones(2, 2), s, d.t(), beta=2, alpha=0.5), torch.addmm(torch.ones(2, 2), s, d.t())",
    "torch.bmm(torch.stack([s, s]), torch.ones(2, 4, 2)), torch.smm(s, d.t()), torch.nn.functional.linear(d, s)",
    "torch.sparse.softmax(s, 1), torch.sparse.softmax(s, 0), torch.sparse.log_softmax(s, 1), "
    "torch.sparse.softmax(h, 0), torch.sparse.softmax(h, 1)",
    "torch.cat([s, s]), torch.cat([s, s], 1), torch.stack([s, s])",
    "s.clone(), s.detach(), s.to(torch.float64), s.cpu(), s.half(), s.long(), torch.zeros_like(s), "
    "torch.empty_like(s).shape",
    "s.new_zeros(2), s.new_empty(2, 3)",
    "copy.deepcopy(s), copy.copy(s), pickle.loads(pickle.dumps(s)), pickle.loads(pickle.dumps(r))",
    "s.sparse_mask(c), d.sparse_mask(s), d.sparse_mask(r)",
    "d.sparse_mask(u)",
    "d.to_sparse(), d.to_sparse(1), d.to_sparse(layout=torch.sparse_csr), d.to_sparse_csr(), d.to_sparse_csc(), "
    "d.to_sparse_bsr((1, 2)), d.to_sparse_bsc((1, 2))",
    "torch.tensor([[True, False]]).to_sparse(), torch.tensor([[0, 7]]).to_sparse()",
    "d.to_sparse_bsr((2, 3))",
    "s.to_sparse(), s.to_sparse_csr(), r.to_sparse(), r.to_sparse_csc(), d.to_sparse_bsr((1, 2)).to_dense(), "
    "d.to_sparse_bsc((2, 2)).to_dense()",
    "s.to_sparse(1)",
    "r.values(), r.crow_indices(), r.col_indices(), r.t().ccol_indices(), r.t().row_indices()",
    "r.indices()",
    "s.crow_indices()",
    "r @ d.t(), r + r, r * 2, r.t(), r.clone(), r[0], r[0, 1], r.float(), r @ d[0], r * r",
    "torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0]), torch.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 3))",
    "torch.sparse_csc_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (3, 2)), torch.sparse_bsr_tensor([0, 1], [0], [[[1.0, 2.0]]])",
    "torch.sparse_compressed_tensor([0, 1, 2], [0, 1], [1.0, 2.0], (2, 2), layout=torch.sparse_csr)",
    "!torch.sparse_csr_tensor([0, 1, 1], [0, 1], [1.0, 2.0], (2, 3), check_invariants=True)",
    "!torch.sparse_csr_tensor([0, 1, 2], [0, 7], [1.0, 2.0], (2, 3), check_invariants=True)",
    "torch.sparse.spdiags(torch.arange(9.0).reshape(3, 3), torch.tensor([0, -1, 1]), (3, 3)).to_dense()",
    "torch.sparse.sampled_addmm(r, torch.ones(2, 3), torch.ones(3, 4), beta=0.5)",
    "[(torch.sparse.sampled_addmm(r, torch.ones(2, 3), torch.ones(3, 4), out=o) is o, o.to_dense()) for o in [r.clone()]]",
    "torch.sparse.sampled_addmm(r, torch.ones(2, 3), torch.ones(3, 4), out=torch.empty(2, 4))",
    "torch.norm(s, keepdim=True)",
    "torch.ones_like(r), torch.ones_like(r, dtype=torch.float64), torch.full_like(r, 3.0)",
    "torch.full_like(r, 2, dtype=torch.int64)",
    "torch.ones_like(s, layout=torch.strided), torch.full_like(s, 4.0, layout=torch.strided)",
    "torch.ones_like(r, requires_grad=True).requires_grad",
    "s.clone(memory_format=torch.channels_last)",
    "r.clone(memory_format=torch.preserve_format)",
    "s.sparse_resize_((3, 5), 2, 0)",
    "s.sparse_resize_and_clear_((3, 5), 2, 0)",
    "grads(lambda x: x.to_dense(), s)",
    "grads(lambda x: x.coalesce().to_dense(), c)",
    "grads(lambda w: torch.sparse_coo_tensor(i, w, (2, 4)).to_dense(), v)",
    "grads(lambda x, y: torch.sparse.mm(x, y), s, torch.ones(4, 2))",
    "grads(lambda x: torch.sparse.sum(x), s)",
    "grads(lambda x: torch.sparse.sum(x, 0), s)",
    "grads(lambda x: torch.sparse.softmax(x, 1), s)",
    "grads(lambda x: (x * 3 + x).t(), c)",
    "grads(lambda x: x.to_sparse(), d)",
    "grads(lambda x: x.sparse_mask(s), d)",
    "grads(lambda a, b: torch.sparse.addmm(a, s, b), torch.ones(2, 2), torch.ones(4, 2))",
    "grads(lambda a, b: torch.sparse.mm(a, b), c, d.t().to_sparse())",
    "x = s.requires_grad_(); x.to_dense().sum().backward(); x.grad.layout, x.grad._nnz(), x.grad.to_dense()",
    "saved(s), saved(c), saved(r), saved(d.to_sparse_csc()), saved(h), saved(e)",
    "saved({'a': s, 'b': r}, weights_only=True)",
    "saved(d.to_sparse_bsr((1, 2)), weights_only=True)",
    "saved(s, weights_only=False)",
    "m = bag(); m(torch.tensor([[1, 3], [3, 0]])).sum().backward(); m.weight.grad, m.weight.grad.coalesce()",
    "m = bag(padding_idx=3); m(torch.tensor([[1, 3], [3, 0]])).sum().backward(); m.weight.grad.to_dense()",
    "m = bag(scale_grad_by_freq=True); m(torch.tensor([1])).sum().backward()",
    "m = bag(); x = m(torch.tensor([1, 3])); x.sum().backward(); m(torch.tensor([3])).sum().backward(); "
    "m.weight.grad.coalesce()",
    "w = torch.ones(4, 2, requires_grad=True); "
    "torch.autograd.grad(torch.nn.functional.embedding(torch.tensor([1, 1]), w, sparse=True).sum(), "
    "w)[0].to_dense()",
    "w = torch.ones(4, 2, requires_grad=True); x = torch.nn.functional.embedding(torch.tensor([1]), w, "
    "sparse=True).sum() + w.sum(); x.backward(); w.grad",
    "w = torch.ones(4, 2, requires_grad=True); torch.nn.functional.embedding_bag(torch.tensor([1, 2, 1]), w, "
    "torch.tensor([0, 2]), mode='sum', sparse=True).sum().backward(); w.grad.layout, w.grad.to_dense()",
    "trained(torch.optim.SGD)",
    "trained(torch.optim.SGD, momentum=0.9)",
    "trained(torch.optim.SparseAdam)",
    "trained(torch.optim.Adagrad)",
    "trained(torch.optim.Adam)",
    "m = bag(); m(torch.tensor([1])).sum().backward(); m.zero_grad(); m.weight.grad is None",
    "m = bag(); m(torch.tensor([1])).sum().backward(); m.zero_grad(set_to_none=False); m.weight.grad.to_dense()",
    "torch.nn.Parameter(s).requires_grad, torch.nn.Parameter(s).layout",
    # a gradient stays the same object
    "m = bag(); m(torch.tensor([1])).sum().backward(); g = m.weight.grad; m(torch.tensor([3, 1])).sum().backward(); "
    "(g is m.weight.grad, g.to_dense(), g._nnz())",
    "m = bag(); m.weight.grad = g = torch.ones(5, 3); m(torch.tensor([1])).sum().backward(); (g is m.weight.grad, g)",
    "m = bag(); m(torch.tensor([1])).sum().backward(); g = m.weight.grad; m.double(); "
    "(g is m.weight.grad, g.dtype, g.to_dense(), m.weight)",
    "x = s.clone(); x.data = d.double().to_sparse(); (x.to_dense(), x.dtype, x.shape)",
    "x = s.clone().requires_grad_(); x.data = u; (x.to_dense(), x.requires_grad, x.shape)",
    "!setattr(s.clone(), 'data', d)",
    "torch.Tensor.crow_indices(r), torch.Tensor.col_indices(r), torch.Tensor.values(r), torch.Tensor.indices(c)",
    "!torch.Tensor.crow_indices(d)",
    # the old constructors
    "torch.sparse.FloatTensor(i, v, torch.Size([2, 4])), torch.sparse.FloatTensor(i, v), torch.sparse.LongTensor(2, 3), "
    "torch.sparse.DoubleTensor(), torch.sparse.HalfTensor(torch.Size([2]))",
    "torch.sparse.FloatTensor(i, v.double()).dtype, torch.sparse.DoubleTensor(indices=i, values=v, size=(2, 4)), "
    "torch.sparse.FloatTensor(size=(2, 3)), torch.sparse.IntTensor(i, v, [2, 4], device='cpu')",
    "[isinstance(x, torch.sparse.FloatTensor) for x in (s, d, r, s.double())], isinstance(s.double(), torch.sparse.DoubleTensor)",
    "torch.sparse.FloatTensor.dtype, torch.sparse.FloatTensor.layout, torch.sparse.ByteTensor.is_sparse, torch.sparse.CharTensor",
    "torch.sparse.FloatTensor([2, 3])",
    "torch.sparse.FloatTensor('a')",
    "torch.sparse.FloatTensor(i)",
    "torch.sparse.FloatTensor(2.5)",
    "torch.sparse.FloatTensor(i, v, v)",
    "!torch.sparse.FloatTensor(dtype=torch.float64)",
    "!torch.sparse.FloatTensor(i, v, 2, 2)",
    "torch.sparse.FloatTensor(2, device='meta')",
    "torch.cat([s, torch.ones(2, 4)])",
    "torch.cat([s, s], dim=3)",
    "torch.cat([s, s.unsqueeze(0)])",
    "torch.cat([s, u])",
    "torch.cat([s, u], 1)",
    "torch.cat([h, torch.sparse_coo_tensor(torch.tensor([[0], [1]]), torch.ones(1), (4, 3))])",
    "s.unsqueeze(5)",
    "s.unsqueeze(-4)",
    "s.transpose(0, 2)",
    "s.sum(2)",
    "torch.select(s, 2, 0)",
    "torch.index_select(s, 2, torch.tensor([0]))",
    "z = torch.sparse_coo_tensor(i, v * (1 + 2j), (2, 4)); z.conj().to_dense(), "
    "torch.conj_physical(z).to_dense(), s.conj().to_dense()",
    "torch.sparse_coo_tensor(i, v, (2, 4)).asinh_()",
    "torch.sparse_coo_tensor(i, v.to(torch.int8), (2, 4)).coalesce().asinh_()",
    "torch.sparse_coo_tensor(i, v, (2, 4)).coalesce().asinh_(), torch.sparse_coo_tensor(i, v, (2, 4)).neg_()",
    "torch.empty_like(s, layout=torch.strided).shape, torch.zeros_like(s, layout=torch.strided), "
    "torch.empty_like(s, layout=torch.strided, memory_format=torch.contiguous_format).layout",
    "torch._validate_sparse_coo_tensor_args(i, v, (2, 4)), torch._validate_sparse_compressed_tensor_args(r.crow_indices(), "
    "r.col_indices(), r.values(), r.shape, r.layout)",
    "torch._validate_sparse_coo_tensor_args(i, v, (1, 4))",
    "torch._validate_sparse_csr_tensor_args(r.crow_indices(), r.col_indices(), r.values(), (3, 4))",
    # the gradient of repeated indices has each index once
    "grads(lambda x: x.to_dense(), u)",
    "grads(lambda x: x * 3, u)",
    "grads(lambda x: torch.sparse.mm(x, torch.ones(3, 2)), u)",
    "grads(lambda x: x.to_dense(), torch.sparse_coo_tensor([[0, 0, 1]], torch.ones(3, 2), (2, 2)))",
    "x = u.requires_grad_(); torch.autograd.grad(x.to_dense().sum(), x)[0].to_dense()",
    "x = u.requires_grad_(); y = x * 1; y.register_hook(lambda g: g * 2); y.to_dense().sum().backward(); x.grad.to_dense()",
    "x = u.requires_grad_(); (x * 2).backward(u.detach()); x.grad.to_dense()",
    "x = torch.ones(2, 3).to_sparse().requires_grad_(); (x * 2).backward(torch.ones(2, 3).to_sparse()); x.grad.zero_(); "
    "x.to_dense().sum().backward(); x.grad.to_dense()",
    "w = v.clone().requires_grad_(); torch.sparse_coo_tensor([[0, 0, 1], [1, 1, 0]], w).to_dense().sum().backward(); w.grad",
    "torch.autograd.gradcheck(lambda x: x.to_dense(), (u.double().requires_grad_(),), masked=True)",
    # batches, elements of several numbers, and indices of 32 bits
    "repr(b3.to_sparse_csr())",
    "repr(b3.to_sparse_csc())",
    "repr(b3.to_sparse_bsr((1, 3)))",
    "repr(b3.to_sparse_bsc((2, 1)))",
    "repr(b3.to_sparse_csr(dense_dim=1))",
    "repr(narrow())",
    "x = b3.to_sparse_bsc((2, 1), dense_dim=0); x.sparse_dim(), x.dense_dim(), x._nnz(), x.to_dense().tolist()",
    "x = b3.to_sparse_csr(dense_dim=1); x.sparse_dim(), x.dense_dim(), x._nnz(), x.to_dense()",
    "[narrow().to_sparse(layout=k).to_dense() for k in kinds[:3]]",
    "x = narrow().to_sparse_csc(); x.ccol_indices(), x.row_indices(), x.values()",
    "x = narrow().to_sparse_bsr((1, 2)); x.crow_indices(), x.col_indices(), x.values()",
    "x = b3.to_sparse_csr().to_sparse_csc(); x.ccol_indices(), x.row_indices(), x.values()",
    "x = b3.to_sparse_csr().to_sparse(); x.indices(), x.values(), x.is_coalesced(), x.sparse_dim()",
    "x = b3.to_sparse_bsr((1, 3)).to_sparse(layout=torch.sparse_bsc, blocksize=(1, 3)); x.ccol_indices(), x.values()",
    "x = b3.to_sparse_csr(); (x[1], x.sin(), x * 2, x.transpose(1, 2), x.clone(), x.double(), x.to_dense())",
    "torch.tensor([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 3.0, 0.0]]).to_sparse_bsr((2, 2)).values()",
    "grads(lambda x: x.to_sparse_bsr((2, 2)), torch.tensor([[1.0, 0.0, 2.0, 0.0], [0.0, 0.0, 3.0, 0.0]]))",
    "b3.to_sparse_csr() * b3.to_sparse_csr()[0, 0, 0].item()",
    "saved(narrow(), weights_only=True), saved(b3.to_sparse_csr(), weights_only=True)",
    "torch.sparse_csr_tensor([[0, 2], [0, 2]], [[0, 1], [0, 3]], [[1.0, 2.0], [3.0, 4.0]])",
    "torch.sparse_bsr_tensor([[0, 1], [0, 1]], [[0], [1]], torch.ones(2, 1, 2, 3))",
    "torch.tensor([[[1.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]]]).to_sparse_csr()",
    "b3[:0].to_sparse_csr()",
    "b3[0, 0].to_sparse_csr()",
    "b3.to_sparse().to_sparse_csr()",
    "b3.to_sparse().to_sparse(layout=torch.sparse_bsc, blocksize=(1, 1))",
    "b3.to_sparse_csr().to_sparse_bsr((1, 1))",
    "b3.to_sparse_csr().to_sparse(3)",
    "b3.to_sparse_csr(dense_dim=2)",
    "b3.to_sparse(blocksize=(1,))",
    "b3.to_sparse_bsr((-1, 3))",
    "b3.to_sparse(layout=torch.sparse_bsr)",
    "b3.to_sparse_bsr((1, 3)).to_sparse_bsc((1, 1))",
    *(
        f"torch.sparse_{kind}_tensor({parts}, check_invariants=True)"
        for kind in ("csr", "csc")
        for parts in (
            "torch.tensor([0, -1, 2, -1, 4, -1])[::2], [0, 1, 0, 1], [1, 2, 3, 4], (2, 2)",
            "torch.tensor(0), [0, 1, 0, 1], [1, 2, 3, 4], (2, 2)",
            "[[0, 2, 4]], [0, 1, 0, 1], [1, 2, 3, 4], (2, 2)",
            "[[0, 2, 4]], [[0, 1, 0, 1]], [1, 2, 3, 4], (2, 2)",
            "[0, 2, 4], [0, 1, 0, 1], [1, 2, 3, 4], (2,)",
            "[[0, 2, 4]], [[0, 1, 0, 1]], [[1, 2, 3, 4]], (2, 2, 2)",
            "[0, 2, 3, 4], [0, 1, 0, 1], [1, 2, 3, 4], (2, 2)",
            "[0, 2, 4], [0, 1, 0, 1, 1], [1, 2, 3, 4], (2, 2)",
            "torch.tensor([0, 2, 4], dtype=torch.int32), torch.tensor([0, 1, 0, 1]), [1, 2, 3, 4], (2, 2)",
            "torch.tensor([0, 2, 4]).short(), torch.tensor([0, 1, 0, 1]).short(), [1, 2, 3, 4], (2, 2)",
            "[1, 2, 4], [0, 1, 0, 1], [1, 2, 3, 4], (2, 2)",
            "[0, 2, 5], [0, 1, 0, 1], [1, 2, 3, 4], (2, 2)",
            "[0, 0, 4], [0, 1, 0, 1], [1, 2, 3, 4], (2, 2)",
            "[0, 2, 4], [0, -1, 0, 1], [1, 2, 3, 4], (2, 2)",
            "[0, 2, 4], [1, 0, 0, 1], [1, 2, 3, 4], (2, 2)",
            "[[0, 2, 4], [0, 2, 4]], [[0, 1, 0, 1], [0, 1, 1, 0]], [[1, 2, 3, 4], [1, 2, 3, 4]], (2, 2, 2)",
        )
    ),
    # tensors that store nothing
    "repr(torch.zeros((2, 3), layout=torch.sparse_coo)), repr(torch.zeros(2, 3, layout=torch.sparse_csr))",
    "torch.zeros(2, 3, 4, layout=torch.sparse_csc, dtype=torch.int32), torch.empty_like(s, layout=torch.sparse_coo)",
    "torch.zeros_like(d, layout=torch.sparse_csr), d.new_zeros((2, 3), layout=torch.sparse_coo, dtype=torch.int32)",
    "x = torch.zeros(2, layout=torch.sparse_coo, requires_grad=True); (x.requires_grad, x.is_leaf, x._nnz())",
    "torch.empty(3, layout=torch.sparse_csr)",
    "torch.empty((2, 2), layout=torch.sparse_bsr)",
    "[repr(torch.zeros_like(r, layout=k)) for k in kinds[:3]]",
    "[repr(torch.zeros_like(d.to_sparse_bsr((1, 2)), layout=k)) for k in (None, torch.sparse_bsc, torch.sparse_coo)]",
    "x = torch.empty_like(r); (x.crow_indices(), x.col_indices(), x.shape, x.values().shape)",
    "torch.empty_like(r, layout=torch.sparse_csc)",
    "torch.randn_like(r).shape, torch.randn_like(r, dtype=torch.float64).dtype",
    "!torch.randn_like(s)",
    "!torch.empty_like(d, layout=torch.sparse_coo)",
    # results in out=
    "x = torch.sparse_coo_tensor((2, 4)); y = torch.sin(s, out=x); (y is x, x)",
    "x = torch.sparse_coo_tensor((7,), dtype=torch.float64); torch.neg(s, out=x); (x.shape, x.dtype, x)",
    "x = torch.sparse_coo_tensor((2, 4)); torch.add(s, c, alpha=2, out=x); x.to_dense()",
    "torch.sin(s, out=torch.sparse_coo_tensor((2, 4), dtype=torch.int64))",
    "!torch.sin(s.requires_grad_(), out=torch.sparse_coo_tensor((2, 4)))",
    "!torch.sin(s, out=torch.zeros(2, 4))",
    "torch.cat([h, h * 2], 1).to_dense(), torch.cat([h, torch.cat([h, h], 1)], 1).to_dense()",
    "x = torch.sparse_coo_tensor((2, 4)); x._coalesced_(False); (x.clone().is_coalesced(), (x * 2).is_coalesced())",
    "x = torch.sparse_coo_tensor(i.int(), v, (2, 4)); (x._indices().dtype, x.to_dense())",
    *_REDUCED,
]
