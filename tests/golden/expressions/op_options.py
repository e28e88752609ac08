"""Gradients and results of operators with their options away from the defaults."""

SETUP = """
F = torch.nn.functional
def x(*shape, dtype=torch.float64, seed=0):
    n = 1
    for s in shape:
        n *= s
    values = (torch.arange(n, dtype=torch.float64) * 0.7 + 1.3 * seed + 0.4).sin() * 2
    return values.reshape(shape).to(dtype)
def g(f, *inputs):
    leaves = [i.detach().clone().requires_grad_() for i in inputs]
    out = f(*leaves)
    seed = (torch.arange(out.numel(), dtype=torch.float64) + 1).cos().reshape(out.shape).to(out.dtype)
    grads = torch.autograd.grad(out, leaves, seed, allow_unused=True)
    return [out.detach().contiguous(), [None if k is None else k.contiguous() for k in grads]]
def outs(f, *dtypes):
    made = tuple(torch.empty(0, dtype=d) for d in dtypes)
    r = f(out=made)
    return [*made, [a.data_ptr() == b.data_ptr() for a, b in zip(r, made)]]
labels = torch.tensor([2, 0, -100, 1])
w3 = torch.tensor([0.5, 2.0, 3.0], dtype=torch.float64)
half, bf = torch.float16, torch.bfloat16
"""

_LOSSES = [
    f"g(lambda a: F.cross_entropy(a, labels, {weight}, label_smoothing={smooth}, reduction='{how}', "
    f"ignore_index={ignored}), x(4, 3))"
    for weight in ("None", "w3")
    for smooth in (0.0, 0.3)
    for how in ("mean", "sum", "none")
    for ignored in (-100,)
] + [
    f"g(lambda a: F.{loss}, x(3, 4))"
    for how in ("mean", "sum", "none")
    for loss in (
        f"binary_cross_entropy(a.sigmoid(), x(3, 4, seed=1).sigmoid(), x(4, seed=2).abs(), reduction='{how}')",
        f"binary_cross_entropy_with_logits(a, x(3, 4, seed=1).sigmoid(), reduction='{how}', "
        "pos_weight=x(4, seed=3).abs() + 1)",
        f"binary_cross_entropy_with_logits(a * 40, x(3, 4, seed=1).sigmoid(), x(3, 1, seed=2).abs(), reduction='{how}', "
        "pos_weight=x(4, seed=3).abs())",
        f"nll_loss(a.log_softmax(1), torch.tensor([3, -1, 1]), x(4, seed=4).abs(), ignore_index=-1, reduction='{how}')",
        f"mse_loss(a, x(3, 4, seed=1), reduction='{how}', weight=x(3, 4, seed=2).abs())",
        f"l1_loss(a, x(3, 4, seed=1), reduction='{how}')",
        f"smooth_l1_loss(a, x(3, 4, seed=1), reduction='{how}', beta=0.3)",
        f"smooth_l1_loss(a, x(3, 4, seed=1), reduction='{how}', beta=0.0)",
        f"huber_loss(a, x(3, 4, seed=1), reduction='{how}', delta=0.4)",
        f"kl_div(a, x(3, 4, seed=1).softmax(1), reduction='{how}')",
        f"kl_div(a, x(3, 4, seed=1), reduction='{how}', log_target=True)",
        f"poisson_nll_loss(a, x(3, 4, seed=1).abs() * 3, full=True, reduction='{how}')",
        f"poisson_nll_loss(a.abs(), x(3, 4, seed=1).abs(), log_input=False, eps=0.2, reduction='{how}')",
        f"gaussian_nll_loss(a, x(3, 4, seed=1), x(3, 4, seed=2).abs(), full=True, eps=0.5, reduction='{how}')",
        f"hinge_embedding_loss(a, x(3, 4, seed=1).sign(), margin=0.6, reduction='{how}')",
        f"soft_margin_loss(a, x(3, 4, seed=1).sign(), reduction='{how}')",
        f"multi_margin_loss(a, torch.tensor([3, 0, 1]), p=2, margin=0.7, weight=x(4, seed=2).abs(), reduction='{how}')",
        f"multilabel_soft_margin_loss(a, (x(3, 4, seed=1) > 0).double(), x(4, seed=2).abs(), reduction='{how}')",
        f"multilabel_margin_loss(a, torch.tensor([[3, 0, -1, 1]] * 3), reduction='{how}')",
        f"cosine_embedding_loss(a, x(3, 4, seed=1), torch.tensor([1, -1, -1]), margin=-0.5, reduction='{how}')",
        f"margin_ranking_loss(a, x(3, 4, seed=1), x(3, 4, seed=2).sign(), margin=0.3, reduction='{how}')",
        f"triplet_margin_loss(a, x(3, 4, seed=1), x(3, 4, seed=2), margin=3.0, p=3, eps=0.1, swap=True, "
        f"reduction='{how}')",
        f"triplet_margin_loss(a, x(3, 4, seed=1), x(3, 4, seed=2), margin=0.1, p=1.5, reduction='{how}')",
    )
]

_NORMS = [
    f"g(lambda a: torch.linalg.vector_norm(a, {p}, dim={dim}, keepdim={keep}), x(2, 3, 4))"
    for p in ("3", "1", "0.5", "float('inf')", "-float('inf')", "-2")
    for dim in ("None", "(2, 0)", "-2")
    for keep in (False, True)
] + [
    "g(lambda a: a.norm(3, dim=(1, 0)), x(3, 4))",
    "g(lambda a: F.normalize(a, p=3, dim=0, eps=2.0), x(3, 4))",
    "g(lambda a: F.normalize(a, p=1, dim=-1, eps=100.0), x(3, 4))",
    "g(lambda a, b: F.pairwise_distance(a, b, p=3, eps=0.5, keepdim=True), x(3, 4), x(3, 4, seed=1))",
    "g(lambda a, b: F.cosine_similarity(a, b, dim=0, eps=4.0), x(3, 4), x(3, 4, seed=1))",
    "g(lambda a, b: F.cosine_similarity(a, b, dim=-2, eps=1e-8), x(2, 3, 4), x(3, 1, seed=1))",
    "g(lambda a, b: torch.cdist(a, b, p=3), x(3, 4), x(2, 4, seed=1))",
    "g(lambda a, b: torch.dist(a, b, 3), x(3, 4), x(3, 4, seed=1))",
    "g(lambda a: torch.renorm(a, 3, 1, 0.7), x(3, 4))",
    "g(lambda a, w, b: F.batch_norm(a, None, None, w, b, True, 0.1, 2.0), x(3, 4), x(4, seed=1), "
    "x(4, seed=2))",
    "m, v = torch.zeros(4).double(), torch.ones(4).double(); g(lambda a: F.batch_norm(a, m, v, "
    "training=True, momentum=0.3, eps=1.0), x(3, 4)), m, v",
    "m, v = x(4, seed=3), x(4, seed=4).abs(); g(lambda a: F.batch_norm(a, m, v, eps=1.0), x(3, 4)), m, v",
    "g(lambda a, w, b: F.group_norm(a, 2, w, b, 3.0), x(2, 4, 3), x(4, seed=1), x(4, seed=2))",
    "g(lambda a: F.instance_norm(a, eps=3.0), x(2, 4, 3))",
    "g(lambda a, w: F.rms_norm(a, (3, 4), w, 2.0), x(2, 3, 4), x(3, 4, seed=1))",
    "g(lambda a: F.local_response_norm(a, 3, alpha=0.5, beta=0.6, k=2.0), x(2, 5, 3))",
    "g(lambda a: F.lp_pool1d(a.abs(), 3, 2), x(2, 3, 6))",
    "g(lambda a: F.embedding(torch.tensor([[0, 1], [0, 2]]), a, padding_idx=0), x(3, 2))",
    "g(lambda a: F.embedding(torch.tensor([[0, 1], [0, 2]]), a, padding_idx=-1, "
    "scale_grad_by_freq=True), x(3, 2))",
    "F.embedding(torch.tensor([0, 2, 2]), x(3, 2) * 4, max_norm=1.5, norm_type=3)",
    "g(lambda a: F.embedding_bag(torch.tensor([[0, 1], [0, 2]]), a, mode='mean', padding_idx=0), x(3, 2))",
    "g(lambda a, w: F.embedding_bag(torch.tensor([0, 1, 0, 2]), a, torch.tensor([0, 1, 4]), "
    "mode='sum', per_sample_weights=w, include_last_offset=True), x(3, 2), x(4, seed=1))",
]

_DIMS = [
    f"g(lambda a: a.{call}, x(2, 3, 4))"
    for call in (
        "sum((2, 0))",
        "mean((-1, 0), keepdim=True)",
        "var((2, 0), correction=0)",
        "var((0, 2), correction=2, keepdim=True)",
        "std((-1, 1))",
        "std(0, correction=0)",
        "logsumexp((2, 0))",
        "amax((2, 0))",
        "amin((1, -1), keepdim=True)",
        "prod(1)",
        "cumsum(-2)",
        "cumprod(0)",
        "logcumsumexp(1)",
        "cummax(1)[0]",
        "cummin(0)[0]",
        "permute(2, 0, 1)",
        "movedim((0, 2), (1, 0))",
        "flip((2, 0))",
        "roll((1, -2), (2, 0))",
        "rot90(3, (2, 0))",
        "diagonal(1, 2, 0)",
        "unfold(2, 3, 1)",
        "squeeze((0, 2))",
        "sort(1, descending=True)[0]",
        "topk(2, 1, largest=False)[0]",
        "kthvalue(2, 0, keepdim=True)[0]",
        "median(1)[0]",
        "nanmedian()",
        "quantile(0.3, 1)",
        "nansum((2, 0))",
        "softmax(0)",
        "log_softmax(1)",
        "diff(2, 1)",
        "repeat_interleave(torch.tensor([1, 0, 2]), 1)",
        "index_add(1, torch.tensor([2, 0, 2]), x(2, 3, 4, seed=1), alpha=-2)",
        "index_copy(2, torch.tensor([2, 0]), x(2, 3, 2, seed=1))",
        "index_fill(1, torch.tensor([2, 0]), 7)",
        "scatter_add(2, torch.tensor([[[1, 0, 3, 1]] * 3] * 2), x(2, 3, 4, seed=1))",
        "gather(1, torch.tensor([[[1, 0, 2, 1]]]))",
        "scatter_reduce(1, torch.zeros(2, 3, 4, dtype=torch.long), x(2, 3, 4, seed=1), 'mean', include_self=False)",
        "take_along_dim(torch.tensor([[[1], [0], [2]]]), 2)",
        "masked_fill(x(2, 3, 4, seed=1) > 0, 3)",
        "clamp(-0.5, 0.7)",
        "nan_to_num(0.0)",
        "unflatten(2, (2, 2))",
        "tril(-1)",
        "triu(1)",
        "diag_embed(1, 0, 2)",
    )
]

_ELSE = [
    "torch._unsafe_index(x(3, 4), [torch.tensor([2, 0])])",
    "g(lambda a: torch.ops.aten._unsafe_index(a, [None, torch.tensor([2, 0])]), x(3, 4))",
    "g(lambda a, b: torch.tensordot(a, b, dims=([0, 2], [1, 0])), x(3, 2, 1), x(4, 3, seed=1))",
    "g(lambda a, b: torch.tensordot(a, b, dims=([1], [0])), x(2, 1), x(4, 3, seed=1))",
    "g(lambda a, b: torch.tensordot(a, b, dims=([0], [1])), x(3, 2), x(4, 1, seed=1))",
    "g(lambda a, b: torch.tensordot(a, b, dims=([-1, 0], [0, -1])), x(3, 2), x(1, 4, 3, seed=1))",
    "torch.tensordot(x(2, 3), x(2, 3), dims=([0], [1]))",
    "torch.tensordot(x(2, 3), x(2, 3), dims=-1)",
    "torch.tensordot(x(2, 3), x(2, 3), dims=3)",
    "torch.tensordot(x(2, 3), x(2, 3), dims=([0], [0, 1]))",
    "outs(lambda out: torch.max(x(3, 4), 1, out=out), torch.float64, torch.int64)",
    "outs(lambda out: torch.sort(x(3, 4), 1, out=out), torch.float64, torch.int64)",
    "outs(lambda out: torch.topk(x(3, 4), 2, out=out), torch.float64, torch.int64)",
    "outs(lambda out: torch.mode(x(3, 4), 1, out=out), torch.float64, torch.int64)",
    "outs(lambda out: torch.linalg.slogdet(x(3, 3) + 3 * torch.eye(3), out=out), torch.float64, "
    "torch.float64)",
    "outs(lambda out: torch.linalg.qr(x(3, 3) + 3 * torch.eye(3), out=out), torch.float64, torch.float64)",
    "outs(lambda out: torch.frexp(x(3, 4), out=out), torch.float64, torch.int32)",
    "!outs(lambda out: torch.max(x(3, 4), 1, out=out), torch.float64)",
    "torch.add(x(2), 1, out=torch.zeros(2, dtype=torch.int32))",
    "torch.add(x(2), 1, out=torch.zeros(3))",
    "x(5)[3:], x(5)[:-2], x(5)[1:None], x(5)[None:3], x(5)[2:9], x(5)[-9:2], torch.narrow(x(5), 0, -2, 1)",
    "torch.ops.aten.slice(x(5)), torch.ops.aten.slice(x(5), 0, 2), torch.ops.aten.slice(x(5), 0, None, 3, 2)",
    "x(1, 3, 1).squeeze(), x(1, 3, 1).squeeze(-1).shape, x(1, 1).squeeze().shape, x(3, 1).squeeze().shape",
    "y = x(1, 3, 1); y.squeeze_(); y.shape",
    "m = torch.nn.MultiheadAttention(4, 2); m(torch.ones(2, 3, 4), torch.ones(3, 4), torch.ones(3, 4))",
    "m = torch.nn.MultiheadAttention(4, 2); m(torch.ones(3, 4), torch.ones(2, 3, 4), torch.ones(3, 4))",
    "m = torch.nn.MultiheadAttention(4, 2); m(torch.ones(2, 3, 4), torch.ones(2, 3, 4), "
    "torch.ones(2, 3, 4), key_padding_mask=torch.zeros(3, dtype=torch.bool))",
    "m = torch.nn.MultiheadAttention(4, 2); m(torch.ones(2, 4), torch.ones(2, 4), torch.ones(2, 4), "
    "attn_mask=torch.zeros(1, 2, 2, 2))",
    "x(3, dtype=half) * 1e-7, (x(3) * 1e-5).half() / 3, (x(3) * 1e-7).half() + 0, (x(3) * 1e-6).half().sum()",
    "(x(4) * 1e-4).half().square(), (x(4) * 1e-4).half().norm(), (x(4) * 1e-4).half().softmax(0)",
    "g(lambda a: a.square().sum().sqrt(), x(4, dtype=half) * 0.01)",
    "g(lambda a: F.layer_norm(a, (4,), eps=1e-5), (x(2, 4) * 1e-3).half())",
    "g(lambda a: F.layer_norm(a, (4,), eps=1e-5), (x(2, 4) * 1e-3).bfloat16())",
    "g(lambda a: F.rms_norm(a, (4,), eps=1e-6), (x(2, 4) * 1e-3).half())",
    "g(lambda a: a.std(), (x(6) * 1e-3).half()), g(lambda a: a.var(0), (x(6, 2) * 1e-3).bfloat16())",
    "g(lambda a, b: a * b, x(3, dtype=half), x(3))",
    "g(lambda a, b: a + b, x(3, 1, dtype=bf), x(4, dtype=torch.float32))",
    "g(lambda a, b: a / b, x(3, dtype=half), x(3, dtype=bf, seed=1))",
    "g(lambda a, b: torch.where(a > 0, a, b), x(3, dtype=half), x(3))",
    "g(lambda a, b: a ** b, x(3).abs(), x(3, seed=1))",
    "g(lambda a, b: torch.atan2(a, b), x(3, dtype=half), x(3))",
    "g(lambda a, b: torch.lerp(a, b, 0.3), x(3), x(3, seed=1))",
    "g(lambda a, b, w: torch.lerp(a, b, w), x(3), x(3, seed=1), x(3, seed=2))",
    "g(lambda a, b, c: torch.addcdiv(a, b, c, value=-2), x(3), x(3, seed=1), x(3, seed=2))",
    "g(lambda a, b, c: torch.addmm(a, b, c, beta=0.3, alpha=-2), x(4), x(3, 2), x(2, 4))",
    "g(lambda a, b, c: torch.baddbmm(a, b, c, beta=0, alpha=3), x(2, 3, 4), x(2, 3, 2), x(2, 2, 4))",
    "g(lambda a, b, c: torch.addbmm(a, b, c, beta=2, alpha=3), x(3, 4), x(2, 3, 2), x(2, 2, 4))",
    "g(lambda a, b, c: torch.addr(a, b, c, beta=2, alpha=3), x(3, 4), x(3), x(4))",
    "g(lambda a, b, c: torch.addmv(a, b, c, beta=2, alpha=3), x(3), x(3, 4), x(4))",
    "g(lambda a, b: a.rsub(b, alpha=3), x(3), x(3, seed=1))",
    "g(lambda a: F.leaky_relu(a, 0.3), x(6))",
    "g(lambda a: F.elu(a, 0.6), x(6))",
    "g(lambda a: F.celu(a, 0.5), x(6))",
    "g(lambda a: F.softplus(a, 3, 2), x(6))",
    "g(lambda a: F.hardtanh(a, -0.3, 0.8), x(6))",
    "g(lambda a: F.threshold(a, 0.3, 5), x(6))",
    "g(lambda a: F.hardshrink(a, 0.9), x(6))",
    "g(lambda a: F.softshrink(a, 0.9), x(6))",
    "g(lambda a: F.glu(a, 0), x(6, 3))",
    "g(lambda a, w: F.prelu(a, w), x(2, 3, 2), x(3, seed=1))",
    "g(lambda a: F.gumbel_softmax(a, 0.5, dim=0).sum(), x(3, 2))",
    "g(lambda a: F.pad(a, (1, 2, 0, -1), value=3), x(3, 4))",
    "g(lambda a: F.pad(a, (2, 1), 'reflect'), x(2, 3, 4))",
    "g(lambda a: F.pad(a, (2, 1), 'circular'), x(2, 3, 4))",
    "g(lambda a, w: F.conv1d(a, w, stride=2, padding=2, dilation=2, groups=2), x(2, 4, 7), x(6, 2, 2))",
    "g(lambda a, w: F.conv_transpose1d(a, w, stride=2, padding=1, output_padding=1, groups=2, "
    "dilation=2), x(2, 4, 5), x(4, 3, 3))",
    "g(lambda a: F.avg_pool1d(a, 3, 2, 1, True, False), x(2, 3, 6))",
    "g(lambda a: F.avg_pool2d(a, 2, 1, 1, divisor_override=3), x(1, 2, 3, 4))",
    "g(lambda a: F.max_pool1d(a, 3, 2, 1, 2, True), x(2, 3, 8))",
    "g(lambda a: F.adaptive_avg_pool1d(a, 3), x(2, 3, 8))",
    "g(lambda a: F.interpolate(a, scale_factor=1.7, mode='linear', align_corners=True), x(2, 3, 5))",
    "g(lambda a: F.interpolate(a, 7, mode='bilinear', antialias=False), x(1, 2, 4, 5))",
    "g(lambda a: F.interpolate(a, 3, mode='bicubic'), x(1, 2, 4, 5))",
    "g(lambda a, k: F.grid_sample(a, k, 'bilinear', 'border', True), x(1, 2, 3, 4), x(1, 2, 2, 2, seed=1))",
    "g(lambda a, k: F.grid_sample(a, k, 'bilinear', 'reflection', False), x(1, 2, 3, 4), x(1, 2, 2, "
    "2, seed=1))",
    "g(lambda a: F.affine_grid(a, (2, 1, 3, 4), align_corners=True), x(2, 2, 3))",
    "g(lambda a: F.fold(a, (4, 5), (2, 2), 1, 1, 2), x(1, 8, 9))",
    "g(lambda a: F.unfold(a, (2, 3), 2, 1, (1, 2)), x(1, 2, 5, 6))",
    "g(lambda a: F.pixel_shuffle(a, 2), x(1, 8, 2, 3)), g(lambda a: F.channel_shuffle(a, 2), x(1, 4, 2, 2))",
    "g(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, x(3, 4, seed=5), scale=0.7), x(2, 3, "
    "4), x(2, 4, 4), x(2, 4, 5))",
    "g(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True), "
    "x(1, 4, 3, 2), x(1, 2, 3, 2), x(1, 2, 3, 2))",
    "g(lambda a: torch.fft.rfft(a, 5, 0, 'ortho').abs(), x(4, 3))",
    "g(lambda a: torch.fft.irfft(torch.complex(a, a), 5, -1, 'forward'), x(2, 4))",
    "g(lambda a: torch.fft.fft2(a, (2, 5), (1, 0), 'ortho').real, x(4, 3))",
    "g(lambda a: torch.fft.hfft(torch.complex(a, a * 2), norm='ortho'), x(4))",
    "g(lambda a: torch.stft(a, 4, 2, 3, torch.ones(3).double(), center=False, onesided=False, "
    "return_complex=True).real, x(9))",
    "g(lambda a: torch.linalg.pinv(a, rtol=0.3), x(3, 2))",
    "g(lambda a, b: torch.linalg.solve(a, b, left=False), x(3, 3) + 3 * torch.eye(3), x(2, 3))",
    "g(lambda a, b: torch.linalg.solve_triangular(a, b, upper=True, left=False, "
    "unitriangular=True), x(3, 3), x(2, 3))",
    "g(lambda a: torch.linalg.matrix_norm(a, 1), x(3, 2))",
    "g(lambda a: torch.linalg.matrix_norm(a, 'nuc', (0, 2)), x(2, 2, 3))",
    "g(lambda a: torch.linalg.matrix_norm(a, -2), x(3, 3))",
    "g(lambda a: torch.linalg.cond(a), x(3, 3) + 3 * torch.eye(3))",
    "g(lambda a, b: torch.linalg.cross(a, b, dim=0), x(3, 2), x(3, 2, seed=1))",
    "g(lambda a, b: torch.kron(a, b), x(2, 3), x(3, 2))",
    "g(lambda a, b: torch.einsum('bij,bjk->kib', a, b), x(2, 3, 4), x(2, 4, 2))",
    "g(lambda a: torch.einsum('iij->ji', a), x(2, 2, 3))",
    "g(lambda a, b: torch.einsum('ab,acd->abcd', a, b), x(2, 3), x(2, 4, 5)), torch.einsum('abc,ad->dcab', x(2, 3, 4), x(2, 5))",
    "g(lambda a: torch.gradient(a, spacing=2.0, dim=1, edge_order=2)[0], x(3, 4))",
    "g(lambda a: torch.trapezoid(a, x(4).cumsum(0), dim=-1), x(3, 4))",
    "g(lambda a: torch.cov(a, correction=0, fweights=torch.tensor([1, 2, 1])), x(2, 3))",
    "g(lambda a: torch.corrcoef(a), x(2, 4))",
    "torch.histc(x(9), 4, -1, 1), torch.bucketize(x(4), torch.tensor([-1.0, 0.0, 1.0]).double(), "
    "right=True), torch.searchsorted(x(5).sort()[0], x(3, seed=1), side='right')",
    "torch.unique(torch.tensor([3, 1, 3]), return_inverse=True, return_counts=True), "
    "torch.unique_consecutive(torch.tensor([[1, 1], [1, 1], [2, 1]]), dim=0)",
    *(
        f"torch.stft(x(16), 8, 2, 4, {window}, center=False, align_to_window={aligned}, return_complex=True)"
        for window in ("torch.hann_window(4).double()", "None")
        for aligned in (True, False)
    ),
    "[torch.resize_as_(torch.empty(0), torch.ones(1, 2, 3, 4), memory_format=f).stride() "
    "for f in (None, torch.channels_last, torch.contiguous_format)]",
    "[torch.ones(1, 2, 3, 4).cpu(memory_format=f).stride() for f in (torch.preserve_format, torch.channels_last)]",
    "[torch._foreach_clone([torch.ones(1, 2, 3, 4).to(memory_format=torch.channels_last)], memory_format=f)[0].stride() "
    "for f in (None, torch.preserve_format, torch.contiguous_format)]",
    "torch.unique(torch.arange(24).reshape(2, 3, 4) % 5, dim=1, return_inverse=True, return_counts=True)",
    "torch.unique((torch.arange(24).reshape(2, 3, 4) % 2).transpose(0, 2), dim=-1, return_counts=True)",
    "torch.unique_consecutive(torch.arange(12).reshape(2, 6) // 2 % 3, dim=1, return_inverse=True)",
    "torch.bincount(torch.tensor([1, 3, 1]), x(3), 6), torch.nonzero(x(2, 3) > 0, as_tuple=True), "
    "torch.argsort(x(2, 3), 0, True)",
    "torch.linspace(1, 2, 5), torch.logspace(0, 2, 3, 2.0), torch.arange(1, 4, 0.5), torch.eye(2, "
    "3), torch.full((2,), 3), torch.tril_indices(3, 4, -1)",
]

_WINDOWS = [
    f"torch.signal.windows.{call}, sym={sym}, dtype=torch.float64)"
    for sym in (True, False)
    for size in (0, 1, 2, 7, 8)
    for call in (
        f"general_cosine({size}, a=[0.5, 0.3, 0.2]",
        f"general_hamming({size}, alpha=0.7",
        f"hamming({size}",
        f"hann({size}",
        f"blackman({size}",
        f"nuttall({size}",
        f"bartlett({size}",
        f"cosine({size}",
        f"exponential({size}, tau=2.0",
        f"gaussian({size}, std=0.7",
        f"kaiser({size}, beta=5.0",
    )
] + [
    "torch.signal.windows.exponential(7, center=2.0, sym=False)",
    "torch.signal.windows.exponential(7, center=2.0)",
    "torch.signal.windows.exponential(7, tau=0.0)",
    "torch.signal.windows.gaussian(7, std=0.0)",
    "torch.signal.windows.hann(-1)",
    "torch.signal.windows.general_cosine(3, a=[])",
    "torch.signal.windows.general_cosine(3, a=2)",
]

_CORNERS = [
    f"torch.manual_seed(5); g(lambda a: F.{call}, x(3, 4, 5))"
    for call in (
        "dropout(a, 0.3)",
        "dropout(a, 0.0)",
        "dropout(a, 1.0)",
        "dropout(a, 0.3, False)",
        "dropout1d(a, 0.4)",
        "alpha_dropout(a, 0.3, True)",
        "alpha_dropout(a, 1.0, True)",
        "feature_alpha_dropout(a, 0.3, True)",
        "dropout1d(a, 0.4, False)",
    )
] + [
    "torch.manual_seed(5); a = x(4, 5); F.dropout(a, 0.4, True, True) is a, a",
    "torch.manual_seed(5); a = x(2, 3, 4); F.dropout1d(a, 0.4, True, True), a",
    "torch.dropout(x(3), 1.2, True)",
    "torch.dropout(x(3), -0.1, True)",
    "torch.feature_dropout(x(3), 0.5, True)",
    "torch.manual_seed(5); torch.feature_dropout(x(3, 2), 0.5, True), torch.alpha_dropout(x(5), 0.5, True)",
    "torch.linalg.cholesky(-torch.eye(2))",
    "torch.linalg.inv(torch.zeros(2, 2))",
    "torch.linalg.solve(torch.zeros(2, 2), torch.ones(2))",
    "g(lambda a: torch.linalg.slogdet(a)[1], x(2, 3, 3) + 3 * torch.eye(3))",
    "g(lambda a: torch.linalg.det(a), torch.zeros(2, 2).double())",
    "g(lambda a: torch.linalg.det(a), x(2, 3, 3)[:, [1, 0, 2]] + torch.eye(3)[[1, 0, 2]] * 3)",
    "g(lambda a: torch.linalg.svdvals(a), x(3, 2)), torch.linalg.svdvals(x(2, 3, 2) + 1)",
    "torch.svd(x(3, 2), compute_uv=False)[1], torch.svd(x(3, 2), compute_uv=False)[0].shape",
    "g(lambda a: torch.linalg.qr(a)[1].abs(), x(3, 2)), g(lambda a: torch.linalg.qr(a, "
    "'r')[1].shape and a, x(3, 2))",
    "g(lambda a: torch.linalg.tensorinv(a, 1), x(4, 2, 2) + 3 * torch.eye(4).reshape(4, 2, 2))",
    "[torch.linalg.cond(x(3, 3) + 3 * torch.eye(3), p) for p in (None, 'fro', 'nuc', float('inf'), "
    "1, -1, 2, -2)]",
    "g(lambda a: torch.addmm(a, x(3, 2), x(2, 4), beta=0), x(3, 4)), g(lambda a: torch.addmm(a, "
    "x(3, 2), x(2, 4), alpha=0), x(3, 4))",
    "g(lambda b, c: torch.addbmm(torch.ones(3, 4).double(), b, c, alpha=2), x(2, 3, 2), x(2, 2, 4))",
    "a = torch.zeros(3, 4).double(); a.addbmm_(x(2, 3, 2), x(2, 2, 4)), a",
    "g(lambda a, b: torch.chain_matmul(a, b, x(4, 2)), x(2, 3), x(3, 4)), g(lambda a, b: "
    "torch.linalg.multi_dot([a, b, x(4)]), x(3), x(3, 4))",
    "torch.linalg.multi_dot([x(3), x(3, 2), x(2, 4), x(4)]), torch.linalg.multi_dot([x(5, 3), x(3, "
    "2), x(2, 4)])",
    "x(3).__rmatmul__(x(2, 3)), g(lambda a, b: torch.mv(a, b), x(3, 4), x(4)), g(lambda w: "
    "F.linear(x(2, 3), w), x(3))",
    "w = x(4, 2) * 3; F.embedding_bag(torch.tensor([0, 2, 2]), w, torch.tensor([0, 2]), 1.5, 3.0), w",
    "g(lambda w: F.embedding_bag(torch.tensor([0, 2, 2, 1]), w, torch.tensor([0, 3]), mode='max', "
    "padding_idx=2), x(4, 2))",
    "g(lambda w: F.embedding_bag(torch.tensor([0, 2, 2, 1]), w, torch.tensor([0, 3]), mode='mean', "
    "padding_idx=2), x(4, 2))",
    "g(lambda w: F.embedding_bag(torch.tensor([[0, 2], [2, 2]]), w, mode='mean', "
    "scale_grad_by_freq=True), x(4, 2))",
    "F.embedding_bag(torch.tensor([0, 1]), x(4, 2), torch.tensor([0]), mode='max', scale_grad_by_freq=True)",
    "F.embedding_bag(torch.tensor([0, 1]), x(4, 2), torch.tensor([0, 0, 2])), "
    "F.embedding_bag(torch.tensor([], dtype=torch.long), x(4, 2), torch.tensor([0, 0]), mode='max')",
    "[torch.empty_like(x(2, 3).t()).stride(), torch.zeros_like(x(2, 3).t(), "
    "memory_format=torch.contiguous_format).stride()]",
    "x(2).new_ones(2, dtype=torch.int8), x(2).new_full((2,), 3), x(2).new_zeros(2, 1), "
    "x(2).new_empty(0), x(2).new_empty_strided((0, 2), (2, 1))",
    "torch.range(1, 4, 1.5), torch.arange(5, 1, -2), torch.arange(3.5), torch.arange(0), torch.arange(1, 1)",
    "g(lambda a: torch.stft(a, 6, 2, 3, torch.ones(3).double(), return_complex=True).imag, x(9)), "
    "torch.stft(x(9), 4, return_complex=True, normalized=True)",
    "s = torch.stft(x(12), 4, 2, window=torch.ones(4).double(), return_complex=True); "
    "torch.istft(s, 4, 2, window=torch.ones(4).double(), length=14), torch.istft(s, 4, 2, "
    "window=torch.ones(4).double(), length=9)",
    "s = torch.stft(x(12), 4, 2, 3, window=torch.ones(3).double(), return_complex=True, "
    "onesided=False); torch.istft(s, 4, 2, 3, torch.ones(3).double(), onesided=False)",
    "torch.fft.ihfft(x(5), 4), torch.fft.hfft2(x(3, 4) + 0j), torch.fft.fftn(x(2, 3), "
    "norm='forward'), torch.fft.ifftn(x(2, 3), norm='forward')",
    "torch.chunk(x(7), 3), torch.split(x(7), [2, 5]), torch.tensor_split(x(7), 3), "
    "torch.tensor_split(x(7), (2, 5)), torch.chunk(x(0, 2), 3), torch.split(x(0), 0)",
    "torch.split(x(7), 0)",
    "g(lambda a: a.diagonal(-1), x(3, 4)), g(lambda a: a.diagonal(9), x(3, 4)), g(lambda a: a[-1, "
    "-3:], x(3, 4)), g(lambda a: a.squeeze(), x(1))",
    "g(lambda a: a.as_strided((2, 2), (1, 2), 1), x(6)), g(lambda a: a.as_strided((0, 2), (1, 2), 1), x(6))",
    "g(lambda q: F.scaled_dot_product_attention(q, q, q, x(3, 3) > 0), x(2, 3, 4)), g(lambda q: "
    "F.scaled_dot_product_attention(q, q, q, is_causal=True), x(3, 2))",
    "g(lambda q: F.scaled_dot_product_attention(q, q, q, x(2, 3, 3, seed=1)), x(2, 2, 3, 4)[0])",
    "F.scaled_dot_product_attention(x(2, 3, 4), x(2, 3, 4), x(2, 3, 4), x(3, 3, dtype=half))",
    "F.scaled_dot_product_attention(x(2, 3, 4), x(2, 3, 4), x(2, 3, 4), x(3, 3), is_causal=True)",
    "g(lambda a: F.cross_entropy(a, torch.tensor(1)), x(3)), g(lambda a: F.cross_entropy(a, "
    "torch.tensor([0.2, 0.3, 0.5]).double(), w3, label_smoothing=0.1), x(3))",
    "g(lambda a: F.cross_entropy(a, x(4, 3, seed=1).softmax(1), w3, label_smoothing=0.1, "
    "reduction='sum'), x(4, 3))",
    "p = x(3).abs(); s = torch.tensor([4.0]); k = torch.tensor([0], dtype=torch.int32); "
    "torch._amp_update_scale_(s, k, torch.tensor([1.0]), 2.0, 0.5, 2), k",
    "s = torch.tensor([4.0]); k = torch.tensor([1], dtype=torch.int32); torch._amp_update_scale_(s, "
    "k, torch.tensor([0.0]), 2.0, 0.5, 2), k",
    "s = torch.tensor([4.0]); k = torch.tensor([0], dtype=torch.int32); torch._amp_update_scale_(s, "
    "k, torch.tensor([0.0]), 2.0, 0.5, 2), k",
    "t = [x(3, dtype=torch.float32)]; f = torch.zeros(1); "
    "torch._amp_foreach_non_finite_check_and_unscale_(t, f, torch.tensor([0.25])), t, f",
    "t = [torch.tensor([1.0, float('inf')])]; f = torch.zeros(1); "
    "torch._amp_foreach_non_finite_check_and_unscale_(t, f, torch.tensor([1.0])), t, f",
    "torch._foreach_norm([x(3), x(2, 2)], 1), torch._foreach_norm([x(3)], float('inf')), "
    "torch._foreach_norm([x(3, dtype=half)], 2, dtype=torch.float32)",
    "w = x(3).requires_grad_(); torch.autograd.grad(torch._foreach_norm([x(2), w * 2])[1], w)",
    "torch._foreach_norm([x(3), x(3).float(), x(3).half()], 3), torch._foreach_norm([x(3) * 1j, x(3)], 0.5)",
    "[torch._foreach_norm([x(3), x(0)], n) for n in (0, 1, 2, 0.5)]",
    "torch._foreach_norm([x(3), x(0)], float('inf'))",
    "torch._foreach_norm([x(3), x(0)], -float('inf'))",
    "torch._foreach_norm([x(3), torch.tensor([1])])",
    "torch._foreach_norm([])",
]
_HEADS = [
    f"torch.manual_seed(3); m = torch.nn.MultiheadAttention(4, 2, {options}).double().eval(); m({call})"
    for options in (
        "batch_first=True",
        "add_bias_kv=True",
        "add_zero_attn=True",
        "kdim=3, vdim=5",
        "bias=False",
    )
    for call in (
        "x(2, 3, 4), x(2, 3, 3 if m.kdim == 3 else 4), x(2, 3, 5 if m.vdim == 5 else 4)",
        "x(2, 3, 4), x(2, 3, m.kdim), x(2, 3, m.vdim), need_weights=False",
        "x(3, 4), x(3, m.kdim), x(3, m.vdim), average_attn_weights=False",
        "x(2, 3, 4), x(2, 3, m.kdim), x(2, 3, m.vdim), "
        "key_padding_mask=torch.tensor([[0, 0, 1], [0, 1, 0]])[:, :3].bool() if m.batch_first else "
        "torch.tensor([[0, 1], [0, 0], [1, 0]]).bool()",
        "x(3, 4), x(3, m.kdim), x(3, m.vdim), key_padding_mask=torch.tensor([False, True, False])",
        "x(3, 4), x(3, m.kdim), x(3, m.vdim), attn_mask=x(2, 3, 3)",
        "x(3, 4), x(3, m.kdim), x(3, m.vdim), attn_mask=x(3, 3) > 0.9, need_weights=False",
        "x(3, 4), x(3, m.kdim), x(3, m.vdim), attn_mask=x(1, 3, 3)",
        "x(3, 4), x(3, m.kdim), x(3, m.vdim), is_causal=True",
        "x(3, 4), x(3, m.kdim), x(3, m.vdim), attn_mask=torch.ones(3, 3, dtype=torch.long)",
        "x(3, 4), x(3, m.kdim), x(3, m.vdim), attn_mask=torch.ones(3, 3).triu(1).bool(), is_causal=True",
    )
]

CASES = _WINDOWS + _CORNERS + _HEADS + _LOSSES + _NORMS + _DIMS + _ELSE
