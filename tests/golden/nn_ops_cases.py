"""Expressions whose answers under real PyTorch are kept in nn_ops.json: products, norms, losses, attention, convolution.

What OpInfo samples do not look at: NaN with beta 0, transposed and expanded operands, second order, states that change in
place, the texts of errors. Each is Python run with `torch` and the names of `SETUP`.
"""

SETUP = """
import math
F = torch.nn.functional
n, inf = math.nan, math.inf
def t(*shape, dtype=torch.float32, scale=7):
    count = math.prod(shape)
    return (torch.sin(torch.arange(count, dtype=torch.float64) * 1.7 + count) * scale / 4).reshape(shape).to(dtype)
a, b, c = t(3, 4), t(4, 5), t(3, 5)
p, q = t(2, 3, 4), t(2, 4, 5)
nan = torch.full((2, 3, 5), n)
def grad(f, *v):
    v = [x.clone().requires_grad_() for x in v]
    return torch.autograd.grad((f(*v) * 1.5).sum(), v)
def grad2(f, *v):
    v = [x.clone().requires_grad_() for x in v]
    g = torch.autograd.grad(f(*v).square().sum(), v, create_graph=True)
    return torch.autograd.grad(sum(x.sin().sum() for x in g), v)
"""

_MATMUL = [
    "torch.baddbmm(nan, p, q, beta=0, alpha=0.5)", "torch.addmm(torch.full((3, 5), n), a, b, beta=0)",
    "torch.addbmm(torch.full((3, 5), n), p, q, beta=0)", "torch.addmv(torch.full((3,), n), a, t(4), beta=0)",
    "torch.addr(torch.full((3, 4), n), t(3), t(4), beta=0)",
    "torch.matmul(a.t().contiguous().t(), b)", "torch.matmul(t(4, 3).t(), t(5, 4).t())", "torch.matmul(p[:, ::2], q)",
    "torch.matmul(p.expand(3, 2, 3, 4), q)", "torch.matmul(t(1, 3, 4), t(6, 4, 2))", "torch.matmul(t(3, 1, 2, 4), t(2, 4, 3))",
    "torch.matmul(t(2, 3, 4).transpose(0, 1), b)", "torch.matmul(t(4), q)", "torch.matmul(p, t(4))", "torch.matmul(t(4), t(4))",
    "torch.matmul(t(2, 0), t(0, 3))", "torch.matmul(t(0, 2, 3), t(3, 2))", "torch.mm(a, b).dtype", "a @ b", "torch.mm(a.half(), b.half())",
    "torch.mm(a.bfloat16(), b.bfloat16())", "torch.mm(a.long(), b.long())", "torch.mm(a.to(torch.uint8), b.to(torch.uint8))",
    "torch.mm(torch.complex(a, a), torch.complex(b, -b))", "torch.dot(t(70), t(70))", "torch.vdot(torch.complex(t(5), t(5)), torch.complex(t(5), -t(5)))",
    "torch.outer(t(3), t(2))", "torch.inner(p, t(5, 4))", "torch.tensordot(p, q, dims=([0, 2], [0, 1]))", "torch.tensordot(p, t(3, 4, 2), 2)",
    "torch.einsum('ij,jk', a, b)", "torch.einsum('bij,bjk->bik', p, q)", "torch.einsum('ii->i', t(4, 4))", "torch.einsum('ii', t(4, 4))",
    "torch.einsum('...ij,jk->...ik', p, b)", "torch.einsum('bn,anm,bm->ba', t(2, 3), t(5, 3, 4), t(2, 4))", "torch.einsum('ij->ji', a)",
    "torch.einsum('i,j', t(3), t(4))", "torch.einsum(a, [0, 1], b, [1, 2], [0, 2])", "torch.einsum('ijk->', p)",
    "torch.linalg.multi_dot([t(3), t(3, 9), t(9, 2), t(2, 6)])", "torch.chain_matmul(a, b, t(5, 2))", "F.bilinear(t(2, 3), t(2, 4), t(5, 3, 4), t(5))",
    "F.linear(p, t(5, 4), t(5))", "F.linear(p.transpose(0, 1), t(5, 4))", "F.linear(t(4), t(4))",
    "x = a.clone(); y = x.addmm_(t(3, 2), t(2, 4), beta=0.5); x", "o = torch.empty(0); torch.mm(a, b, out=o); o",
    "grad(torch.matmul, p, b)", "grad(torch.matmul, t(4), q)", "grad(torch.matmul, p, t(4))", "grad(torch.matmul, a, q)",
    "grad(F.linear, p, t(5, 4), t(5))", "grad2(torch.matmul, p, b)", "grad2(F.linear, a, t(5, 4), t(5))", "grad2(torch.bmm, p, q)",
    "grad(lambda i, x, y: torch.baddbmm(i, x, y, beta=0.5, alpha=2), t(5), p, q)", "grad2(torch.mv, a, t(4))",
    "torch.mm(t(3), a)", "torch.mm(a, t(3))", "torch.mm(a, c)", "torch.mm(a, b.double())", "torch.bmm(a, q)", "torch.bmm(p, t(2, 3, 4))",
    "torch.mv(a, t(3))", "torch.dot(t(3), t(4))", "torch.dot(t(3, 3), t(4))", "torch.matmul(torch.tensor(1.0), b)",
    "torch.matmul(p, t(3, 4, 5))", "torch.addmm(t(3, 3), t(2, 3), t(3, 2))", "F.linear(a, b)", "torch.outer(a, t(3))", "torch.inner(a, b)",
    "torch.einsum('ij,jk', a, c)", "torch.einsum('ij,jk', a)", "torch.tensordot(a, c, 1)", "torch.linalg.multi_dot([a])",
]

_NN = [
    "torch.softmax(torch.tensor([[n, 1.0], [-inf, -inf], [inf, 0.0]]), 1)", "torch.log_softmax(t(3, 70, 2), 1)", "torch.softmax(a, 1, dtype=torch.float64)",
    "torch.softmax(a.t(), 0).shape", "torch.softmax(a, 2)", "torch.softmax(torch.tensor(2.0), 0)", "grad2(lambda x: torch.softmax(x, 1), a)",
    "grad2(lambda x: torch.log_softmax(x, 0), a)", "grad2(lambda x, w, v: F.layer_norm(x, (4,), w, v), a, t(4), t(4))",
    "grad2(lambda x, w: F.rms_norm(x, (4,), w, 1e-5), a, t(4))", "grad2(lambda x, w, v: F.group_norm(x, 2, w, v), t(2, 4, 3), t(4), t(4))",
    "grad2(lambda x, w, v: F.batch_norm(x, None, None, w, v, True), t(3, 4, 2), t(4), t(4))", "F.layer_norm(a.bfloat16(), (4,), t(4).bfloat16())",
    "F.layer_norm(t(4, 3).t(), (4,))", "F.rms_norm(a, (4,))", "F.layer_norm(a, (3,))", "F.group_norm(t(2, 3), 2)", "F.rms_norm(a, (3,))",
    "m, v = torch.zeros(4), torch.ones(4); F.batch_norm(t(5, 4), m, v, training=True, momentum=0.3); [m, v]",
    "F.batch_norm(t(1, 3), None, None, training=True)", "F.instance_norm(t(2, 3, 4))",
    "F.cross_entropy(a, torch.tensor([1, -100, 3]))", "F.cross_entropy(a, torch.tensor([1, 0, 3]), weight=t(4).abs(), label_smoothing=0.1)",
    "F.cross_entropy(a, torch.softmax(a, 1))", "F.cross_entropy(t(2, 3, 4), torch.tensor([[0, 1, 2, 0], [1, 1, 2, 2]]), reduction='none')",
    "F.cross_entropy(t(4), torch.tensor(2))", "F.cross_entropy(a, torch.tensor([-100, -100, -100]))",
    "grad(lambda x: F.cross_entropy(x, torch.tensor([1, -100, 3]), label_smoothing=0.2), a)", "grad2(lambda x: F.cross_entropy(x, torch.tensor([1, 0, 3])), a)",
    "F.cross_entropy(a, torch.tensor([1, 2, 9]))", "F.cross_entropy(a, torch.tensor([1]))", "F.mse_loss(a, a, reduction='foo')",
    "F.nll_loss(a, torch.tensor([1, -1, 0]))", "F.cross_entropy(a, t(3))", "grad2(lambda x: F.nll_loss(x.square(), torch.tensor([1, 0, 3])), a)",
    "F.binary_cross_entropy(torch.tensor([0.0, 1.0, 0.3]), torch.tensor([1.0, 1.0, 0.5]))", "grad(lambda x: F.binary_cross_entropy(x.sigmoid(), torch.ones(3)), t(3))",
    "F.binary_cross_entropy(t(2) * 9, t(2))", "F.binary_cross_entropy_with_logits(a * 30, torch.ones(3, 4), pos_weight=t(4).abs())",
    "F.smooth_l1_loss(a, a.flip(0), beta=0.5)", "F.huber_loss(a, a.flip(0), delta=2.0)", "F.l1_loss(a, a.flip(1), reduction='sum')",
    "F.embedding(torch.tensor([[1, 2], [0, 1]]), a)", "F.embedding(torch.tensor([5]), a)", "F.embedding(t(3), a)",
    "grad(lambda w: F.embedding(torch.tensor([1, 1, 2]), w, padding_idx=2, scale_grad_by_freq=True), a)", "grad2(lambda w: F.embedding(torch.tensor([1, 1, 2]), w), a)",
    "w = t(5, 4); F.embedding(torch.tensor([1, 1, 3]), w, max_norm=1.0); w", "F.one_hot(torch.tensor([0, 2]), 4)", "F.one_hot(torch.tensor([3]), 2)",
    "torch.manual_seed(5); F.dropout(torch.ones(40), 0.3)", "torch.manual_seed(5); F.dropout(torch.ones(4, 5, dtype=torch.float64), 0.5)", "F.dropout(a, 1.5)",
    "torch.manual_seed(3); x = torch.ones(6); F.dropout(x, 0.5, True, True); x",
]
_Q = "s, k, v = t(2, 3, 70, 8), t(2, 3, 300, 8), t(2, 3, 300, 8)"
_NN += [
    f"{_Q}; F.scaled_dot_product_attention(s, k, v).sum((0, 1, 2))", f"{_Q}; F.scaled_dot_product_attention(s, k, v, is_causal=True).mean((0, 1, 3))",
    f"{_Q}; F.scaled_dot_product_attention(s, k[:, :1], v[:, :1], enable_gqa=True).mean((0, 1, 2))",
    f"{_Q}; F.scaled_dot_product_attention(s, k, v, (torch.arange(300) % 3 > 0).expand(70, 300), scale=0.3).mean((0, 1, 2))",
    "F.scaled_dot_product_attention(t(2, 3, 4), t(2, 5, 4), t(2, 5, 6))", "F.scaled_dot_product_attention(t(3, 4), t(5, 4), t(5, 6))",
    "grad(lambda x, y, z, m: F.scaled_dot_product_attention(x, y, z, m), t(1, 2, 3, 4), t(1, 2, 5, 4), t(1, 2, 5, 4), t(3, 5))",
    "F.scaled_dot_product_attention(a, a, a, t(3, 3), is_causal=True)",
    "grad2(lambda x, w, v: F.conv2d(x, w, v, stride=2, padding=1), t(1, 2, 5, 4), t(3, 2, 3, 2), t(3))",
    "grad2(lambda x, w: F.conv_transpose1d(x, w, stride=2, output_padding=1), t(2, 3, 4), t(3, 2, 3))",
    "F.conv1d(t(2, 3, 7), t(4, 3, 4), padding='same')", "F.conv2d(t(2, 5, 5), t(4, 1, 3, 3), groups=2, dilation=2, padding=1)",
    "F.conv2d(t(1, 3, 4, 4), t(2, 4, 3, 3))", "F.conv2d(t(1, 3, 2, 2), t(2, 3, 3, 3))", "F.conv2d(t(4, 4), t(2, 3, 3, 3))",
    "F.pad(a, (1, -1, 2, 0), value=3.0)", "F.pad(a, (2, 1), mode='reflect')", "F.pad(p, (2, 1), mode='replicate')", "F.pad(p, (2, 1), mode='circular')",
    "F.pad(a, (4, 1), mode='reflect')", "F.pad(a, (1,))", "grad(lambda x: F.pad(x, (2, 1), mode='reflect').square(), a)",
    "F.max_pool2d(t(1, 5, 5), 3, 2, 1, return_indices=True)", "F.max_pool2d(t(1, 2, 2), 3)", "F.avg_pool1d(t(1, 2, 7), 3, 2, 1, True, False)",
    "grad2(lambda x: F.max_pool1d(x, 2), t(1, 2, 6))", "grad2(lambda x: F.avg_pool2d(x, 2), t(1, 1, 4, 4))", "F.adaptive_avg_pool2d(t(1, 2, 5, 7), (3, None))",
    "F.interpolate(t(1, 2, 4, 3), scale_factor=2, mode='bicubic')", "F.interpolate(t(1, 2, 5), 3, mode='linear', align_corners=True)",
    "F.interpolate(t(1, 2, 5), scale_factor=1.7, mode='nearest-exact')", "grad(lambda x: F.interpolate(x, (3, 5), mode='bilinear').square(), t(1, 1, 2, 3))",
    "F.fold(F.unfold(t(1, 2, 4, 4), 2, stride=2), (4, 4), 2, stride=2)", "F.grid_sample(t(1, 1, 3, 3), t(1, 2, 2, 2) / 2, align_corners=False)",
    "F.pixel_shuffle(t(1, 4, 2, 2), 2)", "F.pixel_unshuffle(t(1, 1, 4, 4), 2)", "F.channel_shuffle(t(1, 4, 1, 2), 2)",
    "x, g, m, v, k = t(5), t(5) / 3, t(5), t(5).abs(), torch.tensor(3.0); torch._fused_adamw_([x], [g], [m], [v], [], [k], lr=0.1, beta1=0.9, beta2=0.99, "
    "weight_decay=0.1, eps=1e-8, amsgrad=False, maximize=False); [x, m, v]",
    "x, g, m = t(5), t(5) / 3, t(5); torch._fused_sgd_([x], [g], [m], weight_decay=0.1, momentum=0.9, lr=0.1, dampening=0.0, nesterov=True, maximize=False, "
    "is_first_step=False); [x, m]",
]
CASES = _MATMUL + _NN
MATMUL = frozenset(_MATMUL)
