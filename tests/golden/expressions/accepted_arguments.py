"""Arguments that PyTorch takes or refuses by their Python type: bools and ints, numbers for tensors, None, large numbers.

And what a user reads of a result beside its values: the name of its graph node, an undefined gradient.
"""

SETUP = """
import warnings
import numpy
warnings.simplefilter("ignore")
F, L = torch.nn.functional, torch.linalg
x = torch.arange(6.0).reshape(2, 3) - 2.5
n = torch.tensor([1, 2, 3])
w = torch.ones(3, requires_grad=True)
z = torch.tensor([0.0, -2.0, 3.0], requires_grad=True)
classes = torch.tensor([0, 1])
def refused(f):
    try:
        f()
    except Exception as error:
        return type(error).__name__
    return "accepted"
square = torch.ones(3, 3, requires_grad=True)
def ones(count):
    return [torch.ones(*(2,) * (k - 2), *(3,) * min(k, 2), requires_grad=True) for k in range(1, count + 1)]
b, m = torch.tensor([True, False]), torch.tensor([1, 0, 2], dtype=torch.uint8)
d = torch.arange(54.0).double().reshape(2, 3, 3, 3).sin()
q = d.float()
def attention(q, mask, **options):
    mask = None if mask is True else mask
    return F.scaled_dot_product_attention(q, q + 1, q + 2, attn_mask=mask, is_causal=True, **options)
picture = (torch.arange(70.0).double().reshape(2, 1, 5, 7) * 0.7).sin()
def resized(mode, **options):
    leaf = picture.clone().requires_grad_()
    made = F.interpolate(leaf, mode=mode, antialias=True, **options)
    return made, torch.autograd.grad((made * made).sum(), leaf)
def with_autocast(f):
    with torch.autocast("cpu", torch.bfloat16):
        return f()
def undefined(out):
    out.backward()
    return z.grad is None
"""

_BOOLS = """
torch.sum(x, 0, keepdim=1); torch.sum(x, 0, 1); x.sum(0, 1); torch.sort(x, 0, descending=1); torch.topk(x, 1, 0, 1, 1)
torch.max(x, 0, 1); torch.argmax(x, 0, 1); torch.unique(x, sorted=1); torch.all(x, 0, 1); torch.any(x, 0, keepdim=1)
torch.mean(x, 0, 1); torch.logsumexp(x, 0, 1); torch.allclose(x, x, equal_nan=1); torch.zeros(2, requires_grad=1)
torch.tensor([1.0], requires_grad=1); torch.tensor([1.0], pin_memory=0); torch.tensor([1.0], pin_memory=None)
torch.zeros(2, pin_memory=0); torch.empty_like(x, pin_memory=0); torch.full((2,), 1.0, pin_memory=0)
torch.sum(x, 0, numpy.bool_(True)); torch.sum(x, 0, torch.tensor(True)); torch.sum(x, 0, None)
F.dropout(x, 0.0, 1); F.dropout(x, 0.0, None); F.batch_norm(x, None, None, None, None, 1); F.rrelu(x, 0.1, 0.3, 0)
F.relu(x, inplace=1); F.relu(x, "a"); F.relu(x, None); F.elu(x, 1.0, "a"); F.dropout(x, 0.0, True, "a")
F.mse_loss(x, x, size_average="a"); F.mse_loss(x, x, 1, 0); F.max_pool1d(x, 2, ceil_mode=1)
F.max_pool1d(x, 2, return_indices=1); F.gumbel_softmax(x, hard=1); F.kl_div(x, x, log_target=1)
F.embedding(n, x.T.contiguous().repeat(2, 1), sparse=0); F.scaled_dot_product_attention(x, x, x, is_causal=1)
torch.multinomial(x.sigmoid(), 1, 1); L.cholesky(torch.eye(2), upper=1); L.svd(x, 1); torch.searchsorted(n, 1, right=1)
torch.isin(n, n, invert=1); torch.median(x, 0, 1); torch.gather(x, 0, classes[None], sparse_grad=1)
torch.index_put(x, (classes,), x[0], accumulate=1); x.to(torch.float64, 1); x.to(torch.float64, non_blocking=1)
x.to(torch.float64, copy=1); x.copy_(x, 1); x.requires_grad_(1); x.requires_grad_("a"); torch.dropout(x, 0.0, 1)
torch.softmax(x, True); torch.softmax(x, numpy.bool_(True)); torch.softmax(x, torch.tensor(True))
torch.softmax(x, torch.tensor(1)); torch.softmax(x, numpy.int64(1)); torch.permute(x, (True, False))
torch.sum(x, [True]); torch.sum(x, True); torch.sum(x, dim=(0, True)); torch.zeros(2, True); torch.zeros(True)
torch.full((True,), 1); torch.cat([x, x], True); torch.topk(x, True); x.unbind(True); x.select(0, True)
torch.index_select(x, True, classes); F.pad(x, (True, False)); F.embedding(classes, x, padding_idx=True)
x.view(6, True); x.view(True, 6); torch.eye(True); torch.tril(x, True); torch.cumsum(x, True); torch.linspace(0, 1, True)
"""
_ACCEPTED = """
x.copy_(2); x.copy_(True); x.copy_(2.5); x.copy_(1j); n.copy_(2.7); x.copy_(1e300); x.copy_(2**63); refused(lambda: x.copy_("a"))
torch.amax(x, dim=None); torch.amin(x, None); x.amax(dim=None); x.amin(dim=None, keepdim=True); x.amax(())
torch.threshold(x, 0.1, 20, out=torch.empty(0)); torch.detach_copy(x, out=torch.empty(0))
torch.zeros(2, pin_memory=None); torch.full((2,), 1.0, pin_memory=None); torch.arange(3, pin_memory=None)
F.mse_loss(x, x + 1, reduce=0); F.mse_loss(x, x + 1, reduce=""); F.mse_loss(x, x + 1, 0); F.cross_entropy(x, classes, None, 0)
torch.searchsorted(n, 2**63); torch.searchsorted(n.float(), 2**63); torch.searchsorted(n.to(torch.uint8), 2**64 - 1)
torch.searchsorted(n, 2**64); torch.searchsorted(n, -(2**63) - 1); torch.bucketize(2**63, n); torch.bucketize(2**64, n.float())
torch.isin(n, 2**63); torch.isin(2**64 - 1, n.to(torch.uint8)); torch.isin(n.float(), 2**64); torch.isin(n, -(2**64))
x.set_(x.untyped_storage(), 2**64, (1,)); x.set_(x.untyped_storage(), 2**63, (1,)); x.set_(x, -(2**64), (1,))
x.set_(x.untyped_storage(), 0, (2**64,)); x.set_(x.untyped_storage(), 0, (1,), (2**63,))
(w / 2).grad_fn.name(); (w / w).grad_fn.name(); torch.div(w, 2, rounding_mode="floor").grad_fn.name()
(1 - w).grad_fn.name(); w.max().grad_fn.name(); w.max(0)[0].grad_fn.name(); w.min().grad_fn.name()
w.double().grad_fn.name(); w.square().grad_fn.name(); w.norm().grad_fn.name(); w.clamp(0, 1).grad_fn.name()
F.dropout(w, 0.5).grad_fn.name()
F.layer_norm(w, (3,)).grad_fn.name(); F.mse_loss(w, w).grad_fn.name(); F.pad(w, (1, 1)).grad_fn.name()
F.conv1d(w[None, None], w[None, None]).grad_fn.name(); L.inv(torch.eye(3) * w).grad_fn.name()
F.batch_norm(w[:, None], None, None, training=True).grad_fn.name(); F.normalize(w, dim=0).grad_fn.name()
[f.grad_fn.name() for f in (w**2, w**w, 2**w, torch.lerp(w, w, 0.5), torch.lerp(w, w, w), w.clamp(min=w), w.clamp_min(w))]
[f.grad_fn.name() for f in (torch.rsub(w, 2), torch.rsub(w, w), w % 2, w % w, torch.fmod(w, 2), torch.fmod(w, w))]
[f.grad_fn.name() for f in (w.sum(), w.sum(0), w.mean(), w.mean(0), w.prod(), w.prod(0), w.median(), w.median(0)[0])]
[f.grad_fn.name() for f in (w.squeeze(), w.squeeze(0), w.squeeze((0,)))]
[f.shape for f in (torch.kl_div(x, x), torch.hinge_embedding_loss(x, x), torch.binary_cross_entropy_with_logits(x, x))]
[f.shape for f in (torch.ops.aten.kl_div(x, x), torch.ops.aten.kl_div(x, x, 0), torch.margin_ranking_loss(x, x, x))]
[f.grad_fn.name() for f in (torch.copysign(w, 2), torch.xlogy(w, 2), torch.xlogy(2, w), torch.xlogy(w, w))]
[f.grad_fn.name() for f in (w.log1p(), torch.special.xlog1py(w, w))]
[f.grad_fn.name() for f in (F.selu(w), F.celu(w), F.logsigmoid(w), F.prelu(w, w[:1]))]
[f.grad_fn.name() for f in (torch.special.entr(w), torch.special.i0e(w))]
F.group_norm(w[None, :, None].expand(1, 3, 2), 3).grad_fn.name()
L.cholesky(torch.eye(3) * w).grad_fn.name(); torch.fft.rfft(w).grad_fn.name()
[s := w.exp(), s.grad_fn.metadata.__setitem__("a", 1), s.grad_fn.metadata][2]
undefined(L.vector_norm(z, 0)); undefined(torch.norm(z, 0)); undefined(L.vector_norm(z, 1))
torch.autograd.grad(L.det(torch.ones(3, 3) * w).sum(), w); torch.autograd.grad(L.det(torch.zeros(3, 3) * w), w)
"""

_MASKS_AND_NAMES = """
[[(a @ b).grad_fn.name() for b in ones(4)] for a in ones(4) if a.ndim != 2]
[(square @ b).grad_fn.name() for b in ones(2)]
[[F.linear(a, square, b).grad_fn.name() for b in (None, w)] for a in ones(4)]
[F.linear(a, w).grad_fn.name() for a in ones(2)]
torch.isin(b, b); torch.isin(b, True); torch.isin(n, True); torch.isin(True, b); torch.isin(n, b); torch.isin(b, n)
torch.isin(b, 1); torch.isin(x, 1j); torch.isin(x.cfloat(), x); torch.isin(x, x.cfloat()); torch.isin(b[:0], b)
x.masked_fill(m, 1.0); x.clone().masked_fill_(m, 1.0); x.masked_fill(m, torch.tensor(2.0)); x.masked_fill(m.int(), 1.0)
x.masked_select(m); x.masked_scatter(m, x); x.clone().masked_scatter_(m, x); x.masked_select(m.bool())
x.masked_scatter(m.bool(), x); torch.masked_select(x, m.long())
attention(q, True); attention(q, q[0, 0] > -0.5); attention(q, (q > -0.5)[:, :1]); attention(q, q[0, :1, :1])
attention(q, q); attention(q[0], q[0, 0]); attention(q[0, 0], q[0, 0]); attention(q, q[:1, 0]); attention(q, q[0, 0, :, :2])
attention(q, q[0, 0].clone().requires_grad_()); attention(q, q[0, 0], dropout_p=0.5); attention(q.mT, q[0, 0])
attention(d, d[0, 0]); attention(q, q[0, 0], scale=2.0); attention(q[..., :2], q[0, 0])
F.cross_entropy(x, classes, label_smoothing=-0.1); F.cross_entropy(x, classes, label_smoothing=1.1)
F.cross_entropy(x, classes, label_smoothing=float("nan")); F.cross_entropy(x, x.softmax(1), label_smoothing=-0.1)
F.cross_entropy(x, x.softmax(1), label_smoothing=1.1); F.cross_entropy(x, x.softmax(1), label_smoothing=float("nan"))
F.cross_entropy(x, classes, w.detach(), label_smoothing=-5.0, reduction="none"); F.cross_entropy(x, classes, label_smoothing=1.0)
F.cross_entropy(x[0], classes[1], label_smoothing=-0.1); torch.nn.CrossEntropyLoss(label_smoothing=-0.1)(x, classes)
torch.broadcast_shapes(-1); torch.broadcast_shapes((2,), (-1,)); torch.broadcast_shapes(); torch.broadcast_shapes(0, (1,))
torch.broadcast_shapes(0, (2,)); torch.broadcast_shapes((2, 3), (3, 2)); torch.broadcast_shapes(torch.Size([2, 1]), [3])
torch.broadcast_shapes((2.0,)); torch.broadcast_shapes(2.0); torch.broadcast_shapes(3, (4, 1, 1), [2, 1])
resized("bilinear", size=(2, 3)); resized("bilinear", size=(2, 3), align_corners=True); resized("bilinear", size=(7, 4))
resized("bilinear", size=1, align_corners=True); resized("bilinear", scale_factor=0.6); resized("bilinear", scale_factor=(0.4, 1.5))
resized("bilinear", scale_factor=0.6, recompute_scale_factor=True); resized("bilinear", scale_factor=0.6, align_corners=True)
resized("bicubic", size=(2, 3)); resized("bicubic", size=(2, 3), align_corners=True); resized("bicubic", size=(9, 2))
resized("bicubic", size=(1, 8), align_corners=True); resized("bicubic", scale_factor=(0.3, 1.7)); resized("area", size=2)
resized("bilinear", size=(0, 2)); F.interpolate(picture.half(), (2, 3), mode="bicubic", antialias=True)
F.interpolate(picture.float(), (2, 9), mode="bilinear", antialias=True); F.interpolate(x, 2, mode="bilinear", antialias=True)
with_autocast(lambda: L.pinv(x)); with_autocast(lambda: L.pinv(x.T)); with_autocast(lambda: torch.pinverse(x))
with_autocast(lambda: L.pinv(x.double())); with_autocast(lambda: L.pinv(x, atol=1.0))
with_autocast(lambda: L.pinv(torch.eye(2) + 1, hermitian=True)); with_autocast(lambda: L.pinv(x[:0]))
"""


def _lines(text: str) -> list[str]:
    return [part.strip() for line in text.strip().splitlines() for part in line.split(";") if part.strip()]


CASES = [f"refused(lambda: {case})" for case in _lines(_BOOLS)] + _lines(_ACCEPTED)
CASES += _lines(_MASKS_AND_NAMES)
