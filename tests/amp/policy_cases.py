"""Calls by which autocast's policy of an operator shows: the types of the results for operands of several types.

``x(...)`` and ``y(...)`` make the operands; a case is run with both in float32, with both in the lower precision, and
with the first in float32 and the second in the lower precision. grid_sample and index_put are left out: fake tensors of
several types, by which CUDA answers, are an error there.
"""

CALLS = """
torch.conv1d(x(1, 2, 4), y(3, 2, 2))
torch.nn.functional.conv2d(x(1, 2, 4, 4), y(3, 2, 2, 2))
torch.conv3d(x(1, 2, 4, 4, 4), y(3, 2, 2, 2, 2))
torch.conv_transpose1d(x(1, 2, 4), y(2, 3, 2))
torch.conv_transpose2d(x(1, 2, 4, 4), y(2, 3, 2, 2))
torch.prelu(x(2, 2), y(1))
torch.mm(x(2, 2), y(2, 2))
torch.mv(x(2, 2), y(2))
torch.bmm(x(2, 2, 2), y(2, 2, 2))
torch.matmul(x(2, 2), y(2, 2))
x(2, 2) @ y(2, 2)
torch.addmm(x(2, 2), y(2, 2), x(2, 2))
torch.addmv(x(2), y(2, 2), x(2))
torch.addr(x(2, 2), y(2), y(2))
torch.addbmm(x(2, 2), y(2, 2, 2), x(2, 2, 2))
torch.baddbmm(x(2, 2, 2), y(2, 2, 2), x(2, 2, 2))
torch.linalg.multi_dot([x(2, 2), y(2, 2)])
torch.linalg.vecdot(x(2, 2), y(2, 2))
torch.nn.functional.linear(x(2, 2), y(2, 2))
torch.nn.functional.scaled_dot_product_attention(x(1, 1, 2, 2), y(1, 1, 2, 2), y(1, 1, 2, 2))
torch.einsum("ij,jk->ik", x(2, 2), y(2, 2))
torch.chain_matmul(x(2, 2), y(2, 2))
torch.acos(x(2))
torch.asin(x(2))
torch.cosh(x(2))
torch.erfinv(x(2))
torch.exp(x(2))
torch.expm1(x(2))
torch.log(x(2))
torch.log10(x(2))
torch.log2(x(2))
torch.log1p(x(2))
torch.reciprocal(x(2))
torch.rsqrt(x(2))
torch.sinh(x(2))
torch.tan(x(2))
torch.pow(x(2), y(2))
torch.pow(x(2), 2)
x(2) ** 2
2 ** x(2)
torch.sqrt(x(2))
torch.sin(x(2))
torch.sigmoid(x(2))
torch.nn.functional.softplus(x(2))
torch.nn.functional.gelu(x(2))
torch.nn.functional.layer_norm(x(2, 2), [2])
torch.nn.functional.group_norm(x(2, 2), 1)
torch.nn.functional.batch_norm(x(2, 2), None, None, training=True)
torch.nn.functional.softmax(x(2, 2), 1)
torch.softmax(x(2, 2), 1)
torch.log_softmax(x(2, 2), 1)
torch.cumsum(x(2, 2), 1)
torch.cumprod(x(2, 2), 1)
torch.sum(x(2, 2))
torch.sum(x(2, 2), 1)
torch.mean(x(2, 2))
torch.prod(x(2, 2))
torch.prod(x(2, 2), 1)
torch.logsumexp(x(2, 2), 1)
torch.dist(x(2), y(2))
torch.cdist(x(2, 2), y(2, 2))
torch.pdist(x(2, 2))
torch.renorm(x(2, 2), 2, 0, 1.0)
torch.nn.functional.mse_loss(x(2), y(2))
torch.nn.functional.l1_loss(x(2), y(2))
torch.nn.functional.smooth_l1_loss(x(2), y(2))
torch.nn.functional.huber_loss(x(2), y(2))
torch.nn.functional.nll_loss(x(2, 2), labels(2))
torch.nn.functional.cross_entropy(x(2, 2), labels(2))
torch.nn.functional.cross_entropy(x(2, 2), labels(2), reduction="none")
torch.nn.functional.binary_cross_entropy(x(2), y(2))
torch.nn.functional.binary_cross_entropy_with_logits(x(2), y(2))
torch.nn.BCELoss()(x(2), y(2))
torch.addcmul(x(2), y(2), x(2))
torch.addcdiv(x(2), y(2), x(2))
torch.atan2(x(2), y(2))
torch.cross(x(3), y(3), dim=0)
torch.dot(x(2), y(2))
torch.vdot(x(2), y(2))
torch.tensordot(x(2, 2), y(2, 2))
torch.nn.functional.bilinear(x(2, 2), y(2, 2), x(3, 2, 2))
torch.scatter_add(x(2), 0, labels(2), y(2))
torch.index_copy(x(2), 0, labels(2), y(2))
torch.cat([x(2), y(2)])
torch.stack([x(2), y(2)])
torch.polar(x(2), y(2))
torch.quantile(x(2), 0.5)
torch.nanquantile(x(2), 0.5)
torch.trace(x(2, 2))
torch.view_as_complex(x(2, 2))
torch.stft(x(8), 4, window=y(4), return_complex=True)
torch.fft.fft(x(4))
torch.fft.rfft2(x(2, 4))
torch.fft.irfft(torch.fft.rfft(x(4)))
torch.linalg.inv(square(2))
torch.linalg.cholesky(square(2))
torch.linalg.solve(square(2), square(2))
torch.linalg.qr(square(2))
torch.linalg.eigvalsh(square(2))
torch.linalg.det(square(2))
torch.cholesky_inverse(square(2))
torch.nn.functional.avg_pool2d(x(1, 1, 2, 2), 2)
torch.nn.functional.avg_pool3d(x(1, 1, 2, 2, 2), 2)
torch.nn.functional.max_pool3d(x(1, 1, 2, 2, 2), 2)
torch.nn.functional.adaptive_avg_pool3d(x(1, 1, 2, 2, 2), 1)
torch.add(x(2), y(2))
torch.mul(x(2), y(2))
torch.where(x(2) > 0, x(2), y(2))
torch.nn.functional.embedding(labels(2), x(2, 2))
x(2, 2).mm(y(2, 2)).relu()
x(2).exp_()
x(2, 2).addmm_(y(2, 2), y(2, 2))
torch.mm(x(2, 2), y(2, 2), out=out())
torch.exp(x(2), out=out())
""".strip().splitlines()

KINDS = (("float32", "float32"), ("lower", "lower"), ("float32", "lower"))
LOWER = {"cuda": "float16", "cpu": "bfloat16"}


def run(torch, call: str, device: str, kinds, enabled: bool = True) -> list:
    """Types of the results of a call with autocast on or off, or ["error", its class]."""
    first, second = (getattr(torch, LOWER[device] if kind == "lower" else kind) for kind in kinds)
    own = {"device": device}
    names = {
        "torch": torch,
        "x": lambda *shape: torch.full(shape, 0.5, dtype=first, **own),
        "y": lambda *shape: torch.full(shape, 0.5, dtype=second, **own),
        "square": lambda n: (torch.ones(n, n, **own) + 3 * torch.eye(n, **own)).to(first),
        "labels": lambda n: torch.arange(n, **own),
        "out": lambda: torch.empty(0, dtype=first, **own),
    }
    before = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
    torch.set_autocast_dtype(device, getattr(torch, LOWER[device]))
    torch.set_autocast_enabled(device, enabled)
    try:
        made = eval(call, names)
    except Exception as error:
        return ["error", type(error).__name__]
    finally:
        torch.set_autocast_enabled(device, before[0])
        torch.set_autocast_dtype(device, before[1])
        torch.clear_autocast_cache()
    made = made if isinstance(made, (tuple, list)) else [made]
    return [str(t.dtype).removeprefix("torch.") for t in made]


def wanted(torch, call: str, device: str) -> list:
    """For each pair of types the results under autocast, or None where they are those without it."""
    pairs = [(run(torch, call, device, kinds), run(torch, call, device, kinds, False)) for kinds in KINDS]
    return [None if on == off else on for on, off in pairs]


def golden_answers(torch) -> dict:
    """CUDA's answers come from fake tensors: they pass PyTorch's dispatcher, and so its autocast, without memory."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        found = {f"cuda {call}": wanted(torch, call, "cuda") for call in CALLS}
    return found | {f"cpu {call}": wanted(torch, call, "cpu") for call in CALLS}
