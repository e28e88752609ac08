"""Branches of operators that other cases do not reach: rare arguments, ranks, dtypes, and second derivatives."""

from .op_options import SETUP as _SETUP

SETUP = (
    _SETUP
    + """
def gg(f, *inputs):
    leaves = [i.detach().clone().requires_grad_() for i in inputs]
    out = f(*leaves)
    seed = (torch.arange(out.numel(), dtype=torch.float64) + 1).cos().reshape(out.shape).to(out.dtype)
    grads = torch.autograd.grad(out, leaves, seed, create_graph=True)
    total = sum((g * x(*g.shape, seed=3 + k).to(g.dtype)).sum() for k, g in enumerate(grads))
    second = torch.autograd.grad(total + sum((leaf * 0).sum() for leaf in leaves), leaves)
    return [[g.detach() for g in grads], [k + 0 for k in second]]
def c(*shape, seed=0):
    return torch.complex(x(*shape, seed=seed), x(*shape, seed=seed + 7))
def back(u, s, v):
    return (u * s.unsqueeze(-2)) @ v.mT
def near(a, b, tol=1e-8):
    return bool((a - b).abs().max() < tol)
def seeded(f):
    torch.manual_seed(9)
    return f()
spd = x(4, 4) @ x(4, 4).T + 4 * torch.eye(4).double()
tri = torch.arange(81.0).double().reshape(9, 9).cos()
sym = tri + tri.T + 9 * torch.diag(torch.arange(9.0).double())
ints = torch.tensor([3, 0, 2, 2, 5])
G2, G3 = x(1, 3, 4, 2) * 0.8, x(1, 2, 3, 2, 3) * 0.8
"""
)

_SUMS = [
    *(
        f"g(lambda a: torch.logcumsumexp(a, {dim}).abs(), c{shape}), torch.logcumsumexp(c{shape}, {dim})"
        for shape, dim in (
            ("(4)", 0),
            ("(4)", -1),
            ("(3, 2)", 0),
            ("(3, 2)", 1),
            ("(2, 3, 2)", -2),
            ("(0, 2)", 1),
        )
    ),
    "torch.einsum('ij,kj->ik', x(2, 3), x(4, 1))",
    "torch.einsum('ij,kj->ik', x(2, 1), x(4, 3))",
    "g(lambda a, b: torch.einsum('bij,bkj->bik', a, b), x(2, 2, 1), x(1, 4, 3))",
    "g(lambda a, b: torch.einsum('...ij,jk', a, b), x(2, 2, 3), x(3, 4))",
    "torch.einsum('ij,jk', x(2, 0), x(0, 4)), torch.einsum('ij,ij', x(2, 0), x(1, 0)), torch.einsum('i,i', x(0), x(1))",
    "torch.einsum('ij,jk->ik', [x(2, 3), x(3, 4)]), torch.einsum('ij,jk->ik', (x(2, 3), x(3, 4)))",
    "torch.einsum('ij,ij->', x(2, 3), x(2, 4))",
    "torch.einsum('ii', x(2, 3))",
    "torch.einsum('ij->ii', x(2, 3))",
    "torch.einsum('ij->ik', x(2, 3))",
    "torch.einsum('i,j', x(2))",
    "torch.einsum('i', x(2), x(2))",
    "torch.einsum('i')",
    "torch.tensordot(x(2, 3), x(3), 1), torch.tensordot(x(2), x(2), 1), torch.tensordot(x(2), x(3), 0), "
    "torch.tensordot(x(2, 3), x(2, 3), 2)",
    "torch.tensordot(x(2), x(2, 3), 2)",
    "torch.tensordot(x(2, 3), x(3), ([0, 1], [0]))",
    "torch.einsum('i...->...', x(2, 3, 4)), torch.einsum('...i->i...', x(2, 3)), torch.einsum('ba', x(2, 3))",
    "torch.einsum('ab,bc,cd->ad', x(2, 3), x(3, 4), x(4, 5)), torch.einsum('a,b,c->cab', x(2), x(3), x(4))",
    "torch.einsum(x(2, 3), [0, 1], x(3, 4), [1, 2], [0, 2]), torch.einsum(x(2, 3), [0, 1], x(3, 4), [1, 2])",
    "torch.einsum(x(2, 3, 4), [..., 1, 0], [0, ...])",
]

_GRIDS = (
    [
        f"gg(lambda a, k: F.grid_sample(a, k, '{mode}', '{border}', {corners}), x(1, 2, 3, 4), G2)"
        for mode in ("bilinear", "nearest", "bicubic")
        for border in ("zeros", "border", "reflection")
        for corners in (True, False)
    ]
    + [
        f"gg(lambda a, k: F.grid_sample(a, k, '{mode}', '{border}', {corners}), x(1, 2, 2, 3, 2), G3)"
        for mode in ("bilinear", "nearest")
        for border, corners in (("zeros", True), ("border", False), ("reflection", True))
    ]
    + [
        "gg(lambda a, k: F.grid_sample(a, k, 'bilinear', 'reflection', True), x(1, 2, 1, 1), G2)",
        "F.grid_sample(x(1, 2, 3, 4), G2 * 3, 'cubic')",
        "F.grid_sample(x(1, 2, 3, 4), G2 * 3, padding_mode='other')",
        "F.grid_sample(x(1, 2, 2, 3, 2), G3, 'bicubic')",
        "F.grid_sample(x(1, 2, 3, 4), G2 * 3), F.grid_sample(x(1, 2, 3, 4), G2 * 3, 'nearest', 'reflection')",
        "F.affine_grid(x(1, 2, 3), (1, 1, 1, 3), False), F.affine_grid(x(1, 3, 4), (1, 1, 2, 1, 3), True)",
    ]
)

_SUBSCRIPTS = [
    "a = x(3, 4); a[1] = [1, 2, 3, 4]; a[:, 0] = (7, 8, 9); a",
    "a = x(3, 4); a[1] = x(1, 1, 4); a[:2] = x(1, 2, 4, seed=1); a",
    "a = x(3, 4); a[1] = x(2, 4)",
    "a = x(3); a[0] = 3 + 0j; a",
    "a = x(3); a[0] = 3 + 1j",
    "a = torch.zeros(3, dtype=torch.int8); a[0] = 127; a[1] = -128; a",
    "a = torch.zeros(3, dtype=torch.int8); a[0] = 128",
    "a = torch.zeros(3, dtype=torch.int8); a[0] = -129",
    "a = torch.zeros(3, dtype=torch.uint8); a[0] = 255; a[1] = -255; a",
    "a = torch.zeros(3, dtype=torch.uint8); a[0] = 256",
    "a = torch.zeros(3, dtype=torch.int16); a[0] = 2 ** 15",
    "a = torch.zeros(3, dtype=torch.int32); a[0] = 2 ** 31",
    "a = torch.zeros(3, dtype=torch.int64); a[0] = 2 ** 63",
    "a = torch.zeros(3, dtype=half); a[0] = 65504.0; a[1] = -65504.0; a",
    "a = torch.zeros(3, dtype=half); a[0] = 65520.0; a",
    "a = torch.zeros(3); a[0] = None",
    "a = torch.zeros(3); a[0] = 'b'",
    "a = x(3, 4); a[a > 0] = 5.0; a[x(3, 4, seed=1) > 0] = torch.tensor(2.0).double(); a",
    "a = x(3, 4); a[torch.tensor([True, False, True])] = 5.0; a[torch.tensor([0, 2]), 1:3] = 4; a",
    "a = torch.tensor(3.0); a[0]",
    "a = torch.tensor(3.0); a[0] = 1",
    "a = torch.tensor(3.0); a[...] = 1; a[()] = a[()] + 1; a[None] = a + 1; a",
]

_ATTENTION = [
    f"{how}(lambda q, k, v: F.scaled_dot_product_attention(q, k, v{options}), x(1, {heads}, 3, 4), "
    "x(1, 2, 5, 4, seed=1), x(1, 2, 5, 3, seed=2))"
    for how in ("g", "gg")
    for heads, options in (
        (2, ""),
        (2, ", x(3, 5, seed=4) > 0"),
        (2, ", x(2, 3, 5, seed=4)"),
        (2, ", is_causal=True"),
        (2, ", scale=-0.3"),
        (4, ", enable_gqa=True"),
        (4, ", x(3, 5, seed=4) > 0, enable_gqa=True"),
    )
] + [
    "g(lambda m: F.scaled_dot_product_attention(x(2, 3, 4), x(2, 3, 4), x(2, 3, 4), m), x(3, 3))",
    "F.scaled_dot_product_attention(x(3, 0), x(3, 0), x(3, 2))",
    "F.scaled_dot_product_attention(x(2, 3, 4, dtype=half), x(2, 3, 4, dtype=half), x(2, 3, 4, dtype=half), x(3, 3, "
    "dtype=half))",
    "F.scaled_dot_product_attention(x(2, 3, 4, dtype=half), x(2, 3, 4, dtype=half), x(2, 3, 4, dtype=half), x(2, 3, 3) > 0)",
    "F.scaled_dot_product_attention(x(4), x(2, 4), x(2, 4))",
    "F.scaled_dot_product_attention(x(2, 4), x(4), x(2, 4))",
    "F.scaled_dot_product_attention(x(2, 4), x(2, 4), x(4))",
    "!F.scaled_dot_product_attention(x(2, 4), x(2, 4), x(2, 4, dtype=half))",
    "!F.scaled_dot_product_attention(x(2, 4), x(2, 4), x(2, 4), ints.reshape(1, 5)[:, :2])",
    "g(lambda q: F.scaled_dot_product_attention(q, q, q, torch.zeros(3, 3, dtype=torch.bool)), x(2, 3, 4))",
    "F.scaled_dot_product_attention(x(2, 1, 3, 4), x(1, 1, 3, 4), x(1, 1, 3, 4)), "
    "F.scaled_dot_product_attention(x(2, 2, 2, 3, 4), x(2, 2, 2, 3, 4), x(2, 2, 2, 3, 4))",
    "seeded(lambda: F.scaled_dot_product_attention(torch.eye(3)[None], torch.eye(3)[None], torch.eye(3)[None], "
    "dropout_p=1.0))",
]

_GRADIENTS = [
    "torch.gradient(x(3, 4), spacing=torch.tensor(2.0))",
    "torch.gradient(x(3, 4), spacing=[2.0])",
    "torch.gradient(x(3, 4), spacing=[2.0, 3.0], dim=1)",
    "torch.gradient(x(3, 4), spacing=[2.0, 3.0])",
    "torch.gradient(x(3, 4), spacing=(torch.tensor([0.0, 1.0, 3.0]).double(),), dim=0, edge_order=2)",
    "torch.gradient(x(3, 4), dim=(1, 0), spacing=(0.5, 2.0), edge_order=2), torch.gradient(x(2, 4), dim=0)",
    "torch.gradient(x(2, 4), edge_order=2)",
    "torch.gradient(x(3, 4), edge_order=3)",
]

_CREATION = [
    "x(2).new_ones(2, dtype=half), x(2).new_full((2,), 3, dtype=torch.long), x(2).new_zeros((2, 1), dtype=bf), "
    "x(2).new_empty(0, dtype=half), x(2).new_empty_strided((0, 2), (2, 1), dtype=half)",
    "x(2, 3).new_ones((2,), requires_grad=True).requires_grad, torch.zeros_like(x(2), requires_grad=True).requires_grad",
    "[torch.ones_like(x(2, 3).t(), memory_format=m).stride() for m in (torch.contiguous_format, torch.preserve_format)]",
    "torch.full_like(x(2, 3).t(), 3, memory_format=torch.contiguous_format), torch.full_like(x(2, 3), 3, dtype=torch.long)",
    "torch.zeros_like(x(1, 2, 2, 2), memory_format=torch.channels_last).stride()",
    "torch.rand_like(x(2, 3), requires_grad=True).requires_grad, torch.randn_like(x(2, 3).t()).stride()",
    "seeded(lambda: [torch.randint_like(x(4), 5), torch.randint_like(x(4), 2, 5), torch.randint_like(ints, 3, 9)])",
    "seeded(lambda: [x(6).random_(3), x(6).random_(2, 5), ints.clone().random_(4), ints.clone().random_(-3, -1)])",
    "seeded(lambda: [torch.bernoulli(x(5).abs() / 2), torch.bernoulli(x(5), 0.7), x(5).bernoulli_(x(5).abs() / 2)])",
    "x(3).bernoulli_(1.5)",
    "seeded(lambda: torch.normal(x(3), x(3).abs())), seeded(lambda: torch.normal(2.0, x(3).abs())), "
    "seeded(lambda: torch.normal(x(3), 0.3)), seeded(lambda: torch.normal(1.0, 2.0, (3,)))",
    "torch.normal(x(3), -x(3).abs())",
    "torch.normal(x(3), -1.0)",
    "torch.arange(start=3, end=1, step=-1), torch.arange(2, 5), torch.arange(end=4), torch.range(0, 3), "
    "torch.range(1, 2, 0.25)",
    "torch.range(3, 1)",
    "torch.range(1, 3, 0)",
    "!torch.arange()",
    "torch.vander(ints), torch.vander(ints, 2, True), torch.vander(ints, 0), torch.vander(ints, N=1)",
    "torch.vander(x(2, 2))",
    "torch.linalg.vander(x(2, 3)), torch.linalg.vander(ints.int(), N=4), torch.linalg.vander(torch.tensor(2.0), N=3)",
    "torch.linalg.vander(torch.tensor(2.0))",
    "torch.linalg.vander(ints > 1, N=2)",
    "torch.linalg.vander(x(2), N=1)",
    "torch.linalg.vander(x(2), N=0)",
]

_DROPOUT = (
    [
        f"seeded(lambda: g(lambda a: {call}, x(3, 4, 5)))"
        for call in (
            "torch.dropout(a, 1.0, True)",
            "torch.dropout(a, 0.4, False)",
            "torch.dropout_(a * 1, 0.4, True)",
            "torch.feature_dropout(a, 1.0, True)",
            "torch.feature_dropout_(a * 1, 0.4, True)",
            "torch.feature_dropout(a, 0.4, False)",
            "torch.alpha_dropout(a, 1.0, True)",
            "torch.alpha_dropout_(a * 1, 0.4, True)",
            "torch.feature_alpha_dropout(a, 0.4, True)",
            "torch.feature_alpha_dropout_(a * 1, 0.4, True)",
            "torch.native_dropout(a, 0.4, True)[0]",
            "torch.native_dropout(a, 1.0, True)[0]",
            "torch.native_dropout(a, 0.4, False)[0]",
            "F.dropout(a * 1, 1.0, True, True)",
            "F.dropout1d(a, 1.0)",
            "F.dropout1d(a * 1, 1.0, True, True)",
            "F.dropout2d(a, 0.5)",
            "F.dropout2d(a, 0.5, False)",
            "F.dropout2d(a[0], 0.5)",
            "F.dropout3d(a.unsqueeze(0), 0.5)",
            "F.dropout3d(a.reshape(1, 3, 4, 5, 1), 1.0)",
            "F.alpha_dropout(a * 1, 0.4, True, True)",
            "F.alpha_dropout(a * 1, 1.0, True, True)",
            "F.alpha_dropout(a, 0.4)",
            "F.feature_alpha_dropout(a * 1, 1.0, True, True)",
            "F.feature_alpha_dropout(a, 0.4, False)",
        )
    ]
    + [
        f"F.{name}(x(2, 3), {p})"
        for name in (
            "dropout",
            "dropout1d",
            "dropout2d",
            "dropout3d",
            "alpha_dropout",
            "feature_alpha_dropout",
        )
        for p in (1.5, -0.1)
    ]
    + [
        "seeded(lambda: torch.native_dropout(x(3, 4), 0.4, True)[1]), torch.native_dropout(x(3), 0.4, False)[1], "
        "torch.native_dropout(x(3), 1.0, True)[1], torch.native_dropout(x(0), 0.5, True)",
        "seeded(lambda: gg(lambda a: F.dropout(a, 0.4).square(), x(3, 4)))",
        "F.dropout1d(x(3))",
        "F.dropout1d(x(1, 2, 3, 4))",
        "seeded(lambda: F.dropout2d(x(2, 3))), seeded(lambda: F.dropout3d(x(2, 3)))",
        "torch.feature_dropout(x(0, 3), 0.5, True), torch.alpha_dropout(x(0), 0.5, True), F.alpha_dropout(x(0), 0.5, True)",
    ]
)

_FFT = [
    "torch.stft(x(9), 4, return_complex=False)",
    "torch.stft(x(9), 4, win_length=2, center=False, return_complex=True)",
    "torch.stft(c(9), 4, 2, return_complex=True, normalized=True), torch.stft(c(9), 4, onesided=False, return_complex=True)",
    "torch.stft(c(9), 4, onesided=True, return_complex=True)",
    "torch.stft(x(2, 9), 4, 1, 3, torch.ones(3).double(), True, 'constant', True, False, True)",
    "torch.stft(x(9), 4)",
    "torch.stft(x(9), 20, return_complex=True)",
    "!torch.stft(x(9), 4, 0, return_complex=True)",
    "!torch.stft(x(9), 4, win_length=5, return_complex=True)",
    "s = torch.stft(c(12), 4, 2, window=torch.ones(4).double(), return_complex=True); torch.istft(s, 4, 2, "
    "window=torch.ones(4).double(), return_complex=True), torch.istft(s, 4, 2, window=torch.ones(4).double(), "
    "onesided=False, return_complex=True, center=False)",
    "s = torch.stft(x(12), 4, 2, return_complex=True, normalized=True); torch.istft(s, 4, 2, normalized=True)",
    "s = torch.stft(x(2, 12), 4, 2, center=False, return_complex=True); torch.istft(s, 4, 2, center=False), "
    "torch.istft(s, 4, 2, center=False, length=9), torch.istft(s, 4, 2, center=False, length=20)",
    "torch.istft(x(3, 4), 4)",
    "!torch.istft(c(3, 4), 4, 5)",
    "!torch.istft(c(3, 4), 4, 2, 6)",
    "torch.istft(c(3, 4), 4, onesided=True, return_complex=True)",
    "!torch.istft(c(4, 4), 4, onesided=True)",
    "!torch.istft(c(3, 4), 4, onesided=False)",
    "!torch.istft(c(3, 4), 4, 2, window=torch.zeros(4).double())",
    "!torch.istft(c(3, 4), 4, 4, window=torch.tensor([0, 1, 1, 0]).double(), center=False)",
    "g(lambda a: torch.fft.rfft(a, n=2, dim=0).abs(), x(5, 3)), g(lambda a: torch.fft.rfft(a, n=7).abs(), x(5))",
    "g(lambda a: torch.fft.rfft2(a).abs(), x(4, 5)), g(lambda a: torch.fft.rfftn(a, (3, 6), (0, 2)).abs(), x(4, 2, 5))",
    "g(lambda a: torch.fft.irfft2(torch.complex(a, a)), x(4, 3)), "
    "g(lambda a: torch.fft.irfftn(torch.complex(a, a), (3, 4)), "
    "x(4, 3))",
    "g(lambda a: torch.fft.hfft(torch.complex(a, a), 5), x(3)), g(lambda a: torch.fft.ihfft(a, 3).abs(), x(5)), "
    "g(lambda a: torch.fft.ihfft2(a).abs(), x(4, 3))",
    "[f(c(3, 4), s) for f in (torch.fft.irfftn, torch.fft.hfftn, torch.fft.fftn) for s in ((-1, 3), (3, -1), (4, 6))]",
    "[f(x(3, 4), s) for f in (torch.fft.rfftn, torch.fft.ihfftn, torch.fft.ifftn) for s in ((-1, 3), (2, -1))]",
    "[f(c(3, 4), (5, -1), (1, 0), 'ortho') for f in (torch.fft.irfft2, torch.fft.hfft2, torch.fft.ifft2)]",
    "torch.fft.fftshift(x(4, 5), 1), torch.fft.ifftshift(x(4, 5)), torch.fft.fftfreq(5, 0.5), torch.fft.rfftfreq(6, 2.0)",
]

_HASHES = [
    "torch.hash_tensor(x(3, 4)), torch.hash_tensor(x(3, 4), 1), torch.hash_tensor(x(3, 4), 0, keepdim=True), "
    "torch.hash_tensor(x(3, 4), (0, 1), keepdim=True), torch.hash_tensor(torch.tensor(2.0))",
    "torch.hash_tensor(torch.tensor(2.0), 0), torch.hash_tensor(x(2, 3, 4).float(), (2, 0)), torch.hash_tensor(ints)",
    "torch.hash_tensor(x(0, 3), 1)",
    "torch.hash_tensor(x(0))",
    "torch.hash_tensor(x(0, 3), 0)",
    "torch.hash_tensor(x(3), mode=1)",
]

_INDEXING = [
    "x(3).index_fill(0, torch.tensor([0]), 2j)",
    "g(lambda a, v: a.index_fill(0, torch.tensor([0, 2]), v), x(3, 2), x(1).sum())",
    "g(lambda a, s: a.scatter_add(1, torch.tensor([[2, 0, 2]] * 2), s), x(2, 3), x(2, 3))",
] + [
    f"g(lambda a, s: a.index_reduce(1, torch.tensor([2, 0, 2]), s, '{how}', include_self={own}), x(3, 3), x(3, 3, seed=1))"
    for how in ("prod", "mean", "amax", "amin")
    for own in (True, False)
]

_LINEAR = (
    [
        f"torch.linalg.{call}"
        for call in (
            "cholesky_ex(-spd, check_errors=True)",
            "cholesky_ex(-spd)[1]",
            "inv_ex(torch.zeros(2, 2), check_errors=True)",
            "inv_ex(torch.zeros(2, 2))[1]",
            "lu_factor_ex(torch.zeros(2, 2), check_errors=True)",
            "lu_factor_ex(torch.zeros(2, 2))[2]",
            "solve_ex(torch.zeros(2, 2), torch.ones(2), check_errors=True)",
            "solve_ex(spd, x(4))[1]",
            "ldl_factor_ex(spd, check_errors=True)[2]",
            "vector_norm(x(3), 2, dtype=torch.complex128)",
            "vector_norm(c(3), 2, dtype=torch.float64)",
            "vector_norm(x(3, dtype=half), 3, dtype=torch.float64)",
            "vector_norm(x(3), 1.5, keepdim=True)",
            "vector_norm(x(0), -1)",
            "vector_norm(x(0), float('inf'))",
            "vector_norm(x(2, 0), float('inf'), 0)",
            "vector_norm(x(2, 0), float('inf'), 1)",
            "vector_norm(ints)",
            "norm(x(2, 3, 4), 2)",
            "norm(x(3), 'fro')",
            "norm(x(2, 3), 'nuc', (0, 1), True)",
            "norm(x(2, 3), keepdim=True)",
            "norm(x(2, 3), dim=1)",
            "norm(x(2, 3), 3, 1)",
            "matrix_norm(x(2, 3), 5)",
            "matrix_norm(x(2, 3), 'other')",
            "matrix_norm(x(2, 3), 'fro', (0, 2))",
            "matrix_norm(x(2, 3), 1, (0, 0))",
            "matrix_norm(x(2, 3), 1, (0,))",
            "matrix_norm(ints.reshape(1, 5))",
            "matrix_norm(x(2, 3, dtype=torch.float32), 'nuc', dtype=torch.float64)",
            "matrix_norm(x(2, 3), -1, keepdim=True)",
            "matrix_norm(x(2, 3), float('inf'))",
            "matrix_norm(x(2, 3), -float('inf'))",
            "matrix_norm(x(2, 3, 3), -2, (1, 2), True)",
            "matrix_norm(x(2, 3, 3), 2, (0, 1))",
            "pinv(x(0, 3)).shape",
            "pinv(x(3, 2), atol=0.9)",
            "pinv(spd, hermitian=True, rtol=0.4)",
            "matrix_rank(spd, hermitian=True)",
            "matrix_rank(spd, 5.0)",
            "matrix_rank(spd, atol=5.0, rtol=0.0)",
            "matrix_rank(x(2, 0))",
            "cond(x(0, 0), 1)",
            "cond(torch.zeros(2, 2), 1)",
            "cond(x(2, 3), 1)",
            "multi_dot([x(2, 3)])",
            "det(x(2, 3))",
            "svd(x(2, 3), driver='gesvd')",
            "svdvals(x(2, 3), driver='gesvd')",
            "eigvals(spd).real.sort()[0]",
            "eigvalsh(spd, 'U')",
            "eigh(spd, 'X')",
            "ldl_solve(*torch.linalg.ldl_factor(spd), x(4, 1))",
        )
    ]
    + [
        f"torch.linalg.lstsq(x({m}, {n}) + torch.eye({m}, {n}), {b}, driver={driver!r})"
        for m, n in ((4, 2), (3, 3))
        for b in (f"x({m})[:, None]", f"x({m}, 2)")
        for driver in (None, "gels", "gelsy", "gelsd", "gelss")
    ]
    + [
        "torch.linalg.lstsq(x(2, 4, 2), x(2, 4)), torch.linalg.lstsq(x(2, 4, 2), x(2, 4), driver='gelsd')[1]",
        "torch.linalg.lstsq(x(4, 2), x(4, 1), driver='other')",
        "torch.linalg.lstsq(x(4, 2), x(3, 1))",
        "torch.linalg.lstsq(x(4), x(4))",
        "torch.linalg.lstsq(x(4, 2), x(4, 1).half())",
        "g(lambda a, b: torch.linalg.lstsq(a, b)[0], x(4, 2), x(4, 1)), g(lambda a, b: torch.linalg.lstsq(a, b)[0], "
        "x(2, 4, 2), x(2, 4))",
        "g(lambda a, b: torch.triangular_solve(b, a, upper=False, transpose=True)[0], x(3, 3), x(3, 2))",
        "g(lambda a, b: torch.triangular_solve(b, a, unitriangular=True)[0], x(3, 3), x(3, 2))",
        "g(lambda a: torch.linalg.slogdet(torch.complex(a, a.flip(0)))[0].real, x(3, 3) + 3 * torch.eye(3))",
        "g(lambda a: torch.linalg.slogdet(a)[0], spd), g(lambda a: a.logdet(), spd), torch.logdet(-torch.eye(3))",
        "gg(lambda a: torch.linalg.slogdet(a)[1], spd), gg(lambda a: torch.linalg.det(a), spd), gg(torch.linalg.inv, spd)",
        "g(lambda a: torch.linalg.qr(a)[0], x(3, 2)), g(lambda a: torch.linalg.qr(a)[1], x(2, 3)), "
        "g(lambda a: torch.linalg.qr(a, 'complete')[1], x(2, 2))",
        "g(lambda a: torch.linalg.qr(a, 'complete')[1], x(3, 2))",
        "g(lambda a: torch.linalg.qr(a, 'r')[1], x(3, 2))",
        "g(lambda a: torch.linalg.svd(a, False)[1], x(3, 2)), g(lambda a: torch.linalg.svd(a)[1], x(2, 3)), "
        "g(lambda a: torch.linalg.svd(a, False)[0].abs(), x(3, 2)), g(lambda a: torch.linalg.svd(a, "
        "False)[2].abs(), x(2, 3))",
        "g(lambda a: back(*torch.svd(a)), x(4, 3)), g(lambda a: back(*torch.svd(a, some=False))[:, :1], x(3, 3))",
        "seeded(lambda: [near(back(*torch.svd_lowrank(a, 2)), a) for a in (x(5, 2) @ x(2, 4), x(4, 2) @ x(2, 5))])",
        "seeded(lambda: near(back(*torch.svd_lowrank(x(5, 2) @ x(2, 4) + 3, 2, 3, torch.full((1, 4), 3.0).double())), "
        "x(5, 2) @ x(2, 4)))",
        "[p.shape for p in torch.svd_lowrank(x(9, 8))], [p.shape for p in torch.svd_lowrank(x(3, 8), q=2, niter=0)]",
        "a = x(6, 2) @ x(2, 4) + 1; seeded(lambda: [near(back(*torch.pca_lowrank(a, 2)), a - a.mean(0)), "
        "near(back(*torch.pca_lowrank(a, 3, center=False)), a), [p.shape for p in torch.pca_lowrank(x(9, 8))], "
        "[p.shape for p in torch.pca_lowrank(x(3, 8))]])",
        "torch.pca_lowrank(x(5, 4), 5)",
        "torch.pca_lowrank(x(5, 4), -1)",
        "torch.pca_lowrank(x(5, 4), 2, niter=-1)",
        "!torch.pca_lowrank(ints.reshape(1, 5))",
        "a = torch.lobpcg(sym, 2)[0]; near(a, torch.linalg.eigvalsh(sym)[[-1, -2]], 1e-3)",
        "near(torch.lobpcg(sym, 2, largest=False)[0], torch.linalg.eigvalsh(sym)[:2], 1e-3), torch.lobpcg(sym)[0].shape, "
        "torch.lobpcg(sym, X=x(9, 2))[0].shape, torch.lobpcg(sym, 1, largest=True)[1].shape",
        "b = tri @ tri.T + 9 * torch.eye(9); values, v = torch.lobpcg(sym, 2, B=b, niter=100); near(sym @ v, "
        "b @ v * values, 0.01)",
        "torch.lobpcg(sym, 4)",
        "torch.lobpcg(sym, 2, n=4)",
        "torch.nuclear_norm(x(2, 3), True), torch.nuclear_norm(x(2, 3, 4), (0, 2)), torch.frobenius_norm(x(2, 3), "
        "(0, 1), True)",
        "torch.norm(x(2, 3, 4), 'nuc')",
        "torch.norm(x(3), 'nuc')",
        "torch.norm(x(2, 3, 4), 'nuc', (0, 2)), torch.norm(x(2, 3), 'nuc'), torch.norm(x(2, 3), 'fro'), "
        "torch.norm(x(2, 3), None)",
        "!torch.norm(x(2, 3), 'other')",
        "torch.norm(ints)",
        "torch.norm(ints, dtype=torch.float64), torch.norm(x(2, 3), float('inf'), 1, True)",
    ]
    + [
        f"gg(lambda a: torch.renorm(a, {p}, {dim}, 0.7), x(3, 4))"
        for p in ("1", "2", "3", "1.5", "float('inf')")
        for dim in (0, 1)
    ]
)

_PRODUCTS = (
    [
        "a = torch.zeros(4).double(); a.addbmm_(x(2, 3, 2), x(2, 2, 4)), a",
        "torch.addr(torch.tensor([True, False]), torch.tensor([True, False]), torch.tensor([False, True])), "
        "torch.addr(torch.tensor([True, False]), torch.tensor([True, True]), torch.tensor([False, True]), alpha=0), "
        "torch.addr(torch.tensor([True, False]), torch.tensor([True, True]), torch.tensor([False, True]), beta=0)",
        "torch.addr(x(3, 4), x(3), x(4), beta=0), torch.addr(ints[:1], ints[:2], ints[:2], beta=3, alpha=2), "
        "torch.addr(x(3, dtype=half), x(2, dtype=half), x(3, dtype=half), beta=0.5, alpha=2)",
        "torch.addr(x(3, 4), x(3, 1), x(4))",
        "torch.addr(x(3, 4), x(3), x(4, 1))",
        "x(2, 3).__rmatmul__(x(4, 2)), torch.Tensor.__rmatmul__(x(3), x(3))",
    ]
    + [
        f"g(lambda a, b: a @ b, x({a}), x({b}))"
        for a, b in (
            ("3", "3"),
            ("3", "3, 2"),
            ("3", "2, 3, 2"),
            ("2, 3", "3"),
            ("2, 2, 3", "3"),
            ("2, 3", "4, 3, 2"),
            ("4, 2, 3", "3, 2"),
            ("4, 2, 3", "1, 3, 2"),
            ("4, 1, 2, 3", "2, 3, 2"),
            ("0, 3", "3, 2"),
        )
    ]
    + [
        "g(lambda a, w, b: F.linear(a, w, b), c(2, 3), c(4, 3), c(4)), g(lambda a, w: F.linear(a, w), x(2, 2, 3), x(4, 3))",
        "g(lambda a, w: F.linear(a, w), x(2, 3), x(3)), g(lambda a, w: F.linear(a, w), x(3), x(4, 3)), "
        "g(lambda a, w: F.linear(a, w), c(2, 2, 3), c(3))",
        "gg(lambda a, w: F.linear(a, w), x(2, 3), x(3)), gg(lambda a, w: F.linear(a, w), x(2, 3), x(4, 3))",
    ]
)

_SIMPLE = [
    "gg(lambda a: a.clamp(max=0.3), x(4)), gg(lambda a: a.clamp(min=-0.3), x(4)), gg(lambda a, b: torch.clamp(a, b, b + 1), "
    "x(4), x(4, seed=1))",
    "x(4).where(x(4) > 0, -1.0), x(4).where(x(4) > 0, x(4, seed=1)), torch.where(x(4) > 0, 1, 2.5), torch.where(x(4) > 0)",
    "g(lambda a, v: (a * 1).fill_(v), x(3), torch.tensor(2.0).double()), torch.fill(x(3), torch.tensor(2)), "
    "torch.fill(x(3), 2)",
    "!x(3).fill_(x(2))",
    "a = x(4); a.div_(0.7, rounding_mode='floor'), a.div_(0.3, rounding_mode='trunc'), x(4).div_(3)",
    "x(3).div_(2, rounding_mode='other')",
    "g(lambda b: torch.pow(0.0, b), torch.tensor([0.0, 1.0, -1.0]).double()), g(lambda b: torch.pow(2.0, b), x(3)), "
    "g(lambda b: torch.pow(-2.0, b), x(3)), g(lambda b: torch.pow(2.0 + 1j, b).real, c(3)), "
    "g(lambda b: torch.pow(b, 0), x(3)), "
    "g(lambda a, b: torch.pow(a, b), torch.tensor([0.0, 0.0, 2.0]).double(), torch.tensor([0.0, 2.0, -1.0]).double())",
    "g(lambda a, b: torch.remainder(a, b), x(4), x(4, seed=1)), g(lambda a, b: torch.fmod(a, b), x(4), x(4, seed=1)), "
    "g(lambda a: torch.fmod(a, 0.3), x(4))",
    "(x(2, 3) > 0).any([]), torch.all(x(2, 3), []), torch.any(x(2, 3), (0, 1), True), torch.all(x(2, 3) > -3, (0, 1))",
    "torch.aminmax(x(2, 3), keepdim=True), torch.aminmax(x(2, 3), dim=1, keepdim=True), "
    "torch.aminmax(torch.tensor(2.0), dim=0)",
    "torch.aminmax(x(0))",
    "[g(lambda a: torch.linalg.vector_norm(a, p, 1), torch.tensor([[0.0, 0.0], [0.6, -0.8], [0.0, 1.0]]).double()) for p in "
    "(0.5, 1, 1.5, 2, 3, float('inf'), -1)]",
    "g(lambda a: a.amax((0, 1)), torch.tensor([[1.0, 3.0], [3.0, 0.0]]).double()), g(lambda a: a.amin(), "
    "torch.tensor([1.0, 1.0, "
    "2.0]).double())",
    "torch.diff(x(4), 2, prepend=x(1), append=x(2)), torch.diff(x(3, 2), dim=0, append=x(1, 2)), torch.diff(x(3), 0), "
    "torch.diff(x(3) > 0), torch.diff(x(2), 5), torch.diff(ints)",
    "torch.diff(x(3), -1)",
    "torch.diff(torch.tensor(1.0))",
    "torch.trapezoid(x(2, 3, 4), x(3, 4)), torch.trapezoid(x(2, 3, 4), x(3, 1), dim=1), torch.trapezoid(x(2, 0)), "
    "torch.trapezoid(torch.zeros(2, 0, dtype=torch.long)), torch.trapezoid(x(3, 4), dx=0.3, dim=0), "
    "torch.trapezoid(x(0, 2), "
    "dim=0), torch.cumulative_trapezoid(x(2, 3, 4), x(3, 4)), torch.cumulative_trapezoid(x(3, 4), dx=0.3, dim=0)",
    "torch.trapezoid(x(4), x(3))",
    "torch.atleast_1d(torch.tensor(2.0)), torch.atleast_2d(torch.tensor(2.0), x(3)), "
    "torch.atleast_3d([torch.tensor(2.0), x(2), "
    "x(2, 3), x(1, 2, 3)])",
    "torch.cartesian_prod(x(3)), torch.cartesian_prod(x(2), x(3)), torch.block_diag(), torch.block_diag(x(2, 1), x(2), "
    "torch.tensor(3.0)), torch.block_diag(x(0, 2), x(1, 1))",
    "torch.block_diag(x(1, 2, 3))",
    "torch.cartesian_prod(x(2), x(2, 2))",
    "torch.combinations(ints, 3), torch.combinations(ints[:3], 2, True), torch.combinations(ints, 0), "
    "torch.combinations(ints[:0], "
    "2, True), torch.combinations(ints[:1], 3), torch.combinations(ints[:1], 3, True)",
    "torch.combinations(ints, -1)",
    "torch.combinations(x(2, 2))",
    "g(lambda a: a.repeat_interleave(3), x(2, 2)), g(lambda a: a.repeat_interleave(2, 1), x(2, 2)), g(lambda a: "
    "a.repeat_interleave(0), x(2)), "
    "g(lambda a: a.repeat_interleave(torch.tensor([2, 0, 1, 1])), x(2, 2)), "
    "g(lambda a: a.repeat_interleave(torch.tensor([2]), 1), x(2, 2)), torch.repeat_interleave(ints)",
    "[torch.rot90(x(2, 3), k) for k in (-1, 0, 1, 2, 3, 6)], g(lambda a: torch.rot90(a, 2, (1, 0)), x(2, 3))",
    "torch.rot90(x(2, 3), 1, (0, 0))",
    "torch.rot90(x(2, 3), 1, (0, 1, 0))",
    "torch.rot90(x(3))",
    "x(2, 3).sum_to_size(()), x(2, 3).sum_to_size(3), x(2, 3).sum_to_size(2, 1), x(2, 3).sum_to_size(1, 1), "
    "x(2, 3).sum_to_size(2, "
    "3), x(4, 2, 3).sum_to_size(2, 1)",
    "!x(2, 3).sum_to_size(2)",
    "!x(3).sum_to_size(2, 3)",
    "g(lambda a: a.unfold(0, 1, 1), x(1).sum()), g(lambda a: a.unfold(1, 2, 2), x(3, 5)), "
    "g(lambda a: a.unfold(0, 3, 1), x(3))",
    "x(3).unfold(0, 4, 1)",
    "x(3).unfold(0, -1, 1)",
    "x(3).unfold(0, 2, 0)",
    "g(lambda a: a.as_strided((3, 2), (0, 1), 1), x(6)), g(lambda a: a.t().as_strided((2, 2), (1, 2), 0), x(2, 3)), "
    "g(lambda a: a.expand(3, 2).as_strided((2,), (1,)), x(2)), g(lambda a: a.as_strided((1, 2), (1, 1)).sum() + a.sum(), "
    "x(0, 3).new_ones(1, 3))",
    "[torch.quantile(x(5), 0.3, interpolation=i) for i in ('linear', 'lower', 'higher', 'nearest', 'midpoint')], "
    "torch.quantile(torch.tensor(2.0), 0.3, 0), torch.quantile(x(3, 2), torch.tensor([0.1, 0.9]).double(), keepdim=True), "
    "torch.nanquantile(torch.tensor([1.0, float('nan'), 3.0]), 0.5), torch.quantile(x(3, 2), 0.5, 0, True)",
    "torch.quantile(x(3), 1.5)",
    "torch.quantile(x(3), torch.tensor([0.5, -0.1]).double())",
    "torch.quantile(x(3), x(2, 2))",
    "torch.quantile(x(3), torch.tensor([0.5]))",
    "torch.quantile(x(3), 0.5, interpolation='other')",
    "torch.quantile(ints, 0.5)",
    "torch.quantile(x(0), 0.5)",
    "torch.isin(3, ints), torch.isin(ints, 2), torch.isin(ints, ints[:2], invert=True), torch.isin(300, ints.byte()), "
    "torch.isin(ints.byte(), 300), torch.isin(2.5, ints)",
    "torch.histc(x(9), 4), torch.histc(x(9) * 0 + 2, 4), torch.histc(ints.double(), 3, 2, 2), torch.histogram(x(9), 4), "
    "torch.histogram(x(9), 4, range=(-1.0, 1.0), weight=x(9).abs(), density=True), torch.histogram(x(9), "
    "torch.tensor([-2.0, 0, "
    "2]).double()), torch.histogram(x(0), 3)",
    "torch.histogramdd(x(9, 2), [2, 3]), torch.histogramdd(x(9, 2), 2, range=(-1.0, 1.0, -2.0, 0.5)), "
    "torch.histogramdd(x(9, 2), "
    "[torch.tensor([-2.0, 0, 2]).double()] * 2, weight=x(9), density=True)",
    "torch.histogramdd(x(9), 2)",
    "torch.histogramdd(x(9, 2), [2])",
    "torch.histc(torch.tensor([1.0, float('inf')]), 4)",
    "torch.bincount(ints), torch.bincount(ints, x(5)), torch.bincount(ints, minlength=9)",
    "torch.bincount(-ints)",
    "x(3).abs().polygamma(2), x(3).abs().polygamma_(1), torch.polygamma(0, x(3)), "
    "g(lambda a: torch.polygamma(1, a), x(3).abs())",
    "torch.polygamma(-1, x(3))",
    "torch.mvlgamma(x(3).abs() + 2, 3), torch.mvlgamma(ints + 3, 2), gg(lambda a: torch.mvlgamma(a, 2), x(3).abs() + 2)",
    "torch.mvlgamma(x(3).abs() + 2, 0)",
    "g(lambda b: torch.igamma(torch.tensor(1.3).double(), b), x(3).abs()), "
    "g(lambda b: torch.igammac(torch.tensor(1.3).double(), b), "
    "x(3).abs()), g(lambda b: torch.special.zeta(torch.tensor(2.3).double(), b), x(3).abs())",
    "g(lambda a: torch.igamma(a, a), x(3).abs())",
    "g(lambda a: torch.igammac(a, a), x(3).abs())",
    "g(lambda a: torch.special.zeta(a + 1, a), x(3).abs())",
    "x(2, 3).view(torch.int64), x(2, 3).view(dtype=torch.int32).shape, x(2, 3).view(3, 2), x(2, 3).reshape_as(x(6)), "
    "x(2, 3).view_as(x(3, 2)), x(1, 2, 1).squeeze((0, 2)), x(1, 2, 1).squeeze(1), x(1, 2, 1).squeeze(())",
    "x(2, 3).t().view(6)",
    "x(3).view(torch.int16).shape, x(2, 4, dtype=half).view(torch.float32), x(2, 4).float().view(torch.complex64)",
    "x(2, 3, dtype=half).view(torch.float32)",
    "torch.tensor(2.0).view(torch.float64)",
] + [
    f"torch.{name}_window({size}, periodic={periodic}, dtype={dtype})"
    for name in ("hann", "hamming", "blackman", "bartlett", "kaiser")
    for size, dtype in (
        (0, "half"),
        (1, "half"),
        (6, "half"),
        (5, "torch.float64"),
        (-1, "half"),
        (4, "torch.long"),
    )
    for periodic in (True, False)
]

CASES = (
    _SUMS
    + _GRIDS
    + _SUBSCRIPTS
    + _ATTENTION
    + _GRADIENTS
    + _CREATION
    + _DROPOUT
    + _FFT
    + _HASHES
    + _INDEXING
    + _LINEAR
    + _PRODUCTS
    + _SIMPLE
)
