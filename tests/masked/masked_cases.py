"""torch.masked, torch.gradient and torch.hash_tensor: cases that PyTorch's own samples do not contain."""

from tests.golden.answers import expressions

SETUP = """
m = torch.masked
T = torch.tensor
i = T([[3, 1, 2], [4, 5, 6]])
f = i.float()
k = T([[True, False, True], [False, False, False]])
x = torch.arange(12.0).reshape(3, 4) ** 2
xs = T([0.0, 1, 4])
ys = T([0.0, 2, 3, 5])
def both(sparse):
    return sparse.layout, sparse.to_dense()
def grad(function, v):
    v = v.clone().requires_grad_()
    return torch.autograd.grad((function(v) * 3).sum(), v)[0]
"""
_REDUCTIONS = ("sum", "mean", "amax", "amin", "prod", "var", "std", "norm", "logsumexp", "argmax", "argmin")
_SHAPED = ("softmax", "log_softmax", "softmin", "cumsum", "cumprod")
_INPUTS = ("i", "f", "i > 2", "i.to(torch.uint8)", "f.half()", "f.double()")

_reductions = [
    f"m.{name}({x}, {'2.0, ' if name == 'norm' else ''}{dim}, mask=k)"
    for name in _REDUCTIONS
    for x in _INPUTS
    for dim in ("1", "None")
]
_shaped = [f"m.{name}({x}, 1, mask=k)" for name in _SHAPED for x in _INPUTS]
_forms = [
    *[
        f"both(m.{name}((f * k).{layout}, {dim}, keepdim=True{mask}))"
        for name in ("sum", "prod", "amax", "amin")
        for layout, dims in (("to_sparse()", ("0", "1", "None")), ("to_sparse_csr()", ("0", "None")))
        for dim in dims
        for mask in ("", ", mask=k.to_sparse()")
        if mask or name != "amin"  # whose error names amax
    ],
    "both(m.sum((f * k).to_sparse(), 1)), both(m.prod((f * k).to_sparse(), 0, mask=k))",
    "both(m.sum((f * k).to_sparse_csr(), 1, keepdim=True))",
    "!m.sum((f * k).to_sparse_csr(), 1)",
    "m.amax((f * k).to_sparse_csr(), 1, mask=k.to_sparse_csr())",
    "m.mean((f * k).to_sparse(), 1)",
    "m.sum(f.to_sparse(1), 1, keepdim=True).to_dense(), m.sum((f * k).to_sparse()).to_dense()",
    "m._where(k, f, T(7.0)), m._where(k.to_sparse(), (f * k).to_sparse(), T(7.0))",
    "m._where(k.to_sparse_csr(), f.to_sparse_csr(), T(7.0))",
    "m._where(k.to_sparse(1), f.to_sparse(1), T(7.0))",
    "m._input_mask(f, mask=k[0]), m._input_mask(f.to_sparse(), mask=k), m._input_mask(f.to_sparse_csr(), mask=k)",
    "m._input_mask(f)",
    "m._input_mask(f[0], mask=k)",
    "m._output_mask(m.sum, f, 1, mask=k), m._output_mask(m.norm, f, 2.0, 0, keepdim=True, mask=k)",
    "m._output_mask(m.softmax, f, 1, mask=k)",
    "m._output_mask(torch.sum, f, mask=k)",
    "m._output_mask(torch.tanh, f, mask=k)",
    "m._output_mask('sum', f, mask=k)",
    "m._canonical_dim(None, 3), m._canonical_dim((), 2), m._canonical_dim((2, -3), 3), m._canonical_dim(0, 0)",
    "m._canonical_dim((0, 0), 3)",
    "m._canonical_dim(3, 3)",
    *[
        f"m.{name}(f, 1, mask=k.{layout}())"
        for layout in ("to_sparse", "to_sparse_csr")
        for name in ("sum", "var", "amax")
    ],
    "m.softmax(f, 1, mask=k.to_sparse()), m.mean(f, mask=k[None, 0].to_sparse())",
    "m.median(f, 1, mask=k)",
    "m.median(f, (0, 1), mask=k)",
    "m.median(i, 1, mask=k)",
    "m.median(i, 1, mask=i > 1)",
    "m.median(i, 1)",
    "m.normalize(f, 2, 1, mask=k)",
    "m.normalize(i, 2, 1, mask=k)",
    "m.normalize(f, 1, 1, mask=k, dtype=torch.float64)",
    "m.logaddexp(f, f, input_mask=k)",
    "m.logaddexp(f, f * 2, input_mask=k, other_mask=~k)",
    "m.sum(f, 1, mask=k[None])",
    "m.sum(f, 1, mask=T([True, False]))",
    "m.sum(f, 1, mask=T([True, False, True]))",
    "m.sum(f, (1, 1), mask=k)",
    "m.sum(f, 5, mask=k)",
    "m.sum(f, (), mask=k)",
    "m.sum(f, 1, mask=k.float())",
    "m.sum(T(3.0), 0, mask=T(False))",
    "m.amax(f, (0, 1), mask=k, keepdim=True)",
    "m.amax(f, 1, mask=k, dtype=torch.float64)",
    "m.argmax(f, None, mask=k, keepdim=True)",
    "m.mean(i, 1, dtype=torch.float32)",
    "m.var(f.to(torch.complex64) * (1 + 2j), 1, mask=k)",
    "m.var(f, 1, correction=0.5, mask=k)",
    "m.var(f, 1, False, mask=k)",
    "m.var(f, 1, True, correction=0.5, mask=k)",
    *(f"m.norm(f, {p}, 1, mask=k)" for p in ("float('inf')", "float('-inf')", "0", "1", "3", "-2")),
    "m.prod(i, 1, mask=k, dtype=torch.float32)",
    "m.softmax(f, 1, mask=k, dtype=torch.float64)",
    "m.softmax(f, 5, mask=k)",
    *(
        f"grad(lambda v: m.{name}(v, {'2, ' if name == 'norm' else ''}1, mask=i > 1), f)"
        for name in (*_REDUCTIONS[:9], "median", *_SHAPED)
    ),
]
_gradient = [
    f"torch.gradient({text})"
    for text in (
        "x",
        "x, spacing=2.0",
        "x, spacing=(2.0, 3.0)",
        "x, spacing=(xs, ys)",
        "x, spacing=2, dim=1, edge_order=2",
        "x, spacing=(2,), dim=1",
        "x.double(), spacing=(ys.double(),), dim=1, edge_order=2",
        "x, spacing=(ys,), dim=-1",
        "x, dim=(0, 1)",
        "x, dim=(0, 0)",
        "x, dim=[]",
        "x, dim=5",
        "x[:1]",
        "x[:2], edge_order=2",
        "x, edge_order=3",
        "x, spacing=(1.0,)",
        "x, spacing=(xs, ys), dim=0",
        "x, spacing=T(2.0)",
        "x.long()",
        "x.long(), spacing=2",
        "x.to(torch.uint8)",
        "x.half(), spacing=0.5",
        "x + 2j * x, edge_order=2",
        "T(1.0)",
    )
]
_hashes = [
    *(
        f"torch.hash_tensor(T([1, 3, 0]).to(torch.{d})).view(torch.int64)"
        for d in ("float32", "float16", "bfloat16", "float64", "int8", "uint8", "bool", "int64")
    ),
    "torch.hash_tensor(x, 1).view(torch.int64)",
    "torch.hash_tensor(x, (0, 1), keepdim=True).view(torch.int64)",
    "torch.hash_tensor(x).dtype",
    "torch.hash_tensor(x, mode=1)",
    "torch.hash_tensor(x[:0])",
    "torch.hash_tensor(x[:0], 0)",
    "torch.hash_tensor(x + 1j)",
    "torch.hash_tensor(T([float('nan'), 1.0, -0.0])).view(torch.int64)",
]
_names = [
    "torch.ops.aten.add.Tensor(x, x)",
    "str(torch.ops.aten.add.Tensor)",
    "torch.ops.aten.mm.default is torch.ops.aten.mm.default",
    "torch.ops.aten._safe_softmax.default(T([[float('-inf')] * 2, [1.0, 2.0]]), -1)",
    "torch.ops.aten.linalg_vector_norm(x)",
    "a = torch.zeros(1); a.addbmm_(torch.ones(2, 5, 3), torch.ones(2, 3, 4)).shape",
]
CASES = expressions(SETUP, [*_reductions, *_shaped, *_forms, *_gradient, *_hashes, *_names])
