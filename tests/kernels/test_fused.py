"""The other fused operators against their formulas in float64: norms, activations, rotary, softmax, ring attention."""

from __future__ import annotations

import numpy as np
import pytest

import msadapter as torch
from kernels_ascend import norm
from kernels_ascend.attention_calls import npu_fusion_attention
from msadapter import torch_npu


def random(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def leaf(x, dtype=torch.float64):
    return torch.tensor(np.ascontiguousarray(x)).to(dtype).requires_grad_()


def numeric(function, arrays, which, g, step=1e-6):
    """The gradient of sum(g * function(arrays)) by finite differences, element by element."""
    out = np.zeros_like(arrays[which])
    for index in np.ndindex(out.shape):
        values = []
        for sign in (1, -1):
            moved = [a.copy() for a in arrays]
            moved[which][index] += sign * step
            values.append((function(*moved) * g).sum())
        out[index] = (values[0] - values[1]) / (2 * step)
    return out


def check(function, operator, arrays, tolerance=1e-10):
    """Compares forward, gradients with finite differences, and second derivatives."""
    leaves = [leaf(a) for a in arrays]
    out = operator(*leaves)
    want = function(*arrays)
    np.testing.assert_allclose(out.detach().numpy(), want, atol=tolerance)
    g = random(99, *want.shape)
    out.backward(torch.tensor(g))
    for i, one in enumerate(leaves):
        np.testing.assert_allclose(one.grad.numpy(), numeric(function, arrays, i, g), atol=1e-6)
    assert torch.autograd.gradgradcheck(operator, leaves)


@pytest.mark.parametrize("shape", [(5,), (3, 5)])
def test_rms_norm(shape):
    def formula(x, gamma):
        axes = tuple(range(-gamma.ndim, 0))
        return x / np.sqrt((x * x).mean(axes, keepdims=True) + 1e-3) * gamma

    x, gamma = random(1, 2, 3, 5), random(2, *shape)
    check(formula, lambda *a: torch_npu.npu_rms_norm(*a, epsilon=1e-3)[0], [x, gamma])
    rstd = torch_npu.npu_rms_norm(torch.tensor(x).float(), torch.tensor(gamma).float(), 1e-3)[1]
    assert rstd.shape == (2, 3, 1) if len(shape) == 1 else (2, 1, 1)
    assert rstd.dtype == torch.float32
    with pytest.raises(RuntimeError, match="last dimensions"):
        torch_npu.npu_rms_norm(torch.zeros(2, 3), torch.zeros(2))


def test_rms_norm_of_16_bits_computes_in_float32():
    x, gamma = torch.full((2, 64), 300.0).half(), torch.ones(64).half()
    y, rstd = torch_npu.npu_rms_norm(x, gamma)
    assert y.dtype == torch.float16
    assert torch.allclose(y.float(), torch.ones(2, 64), atol=1e-3)
    assert rstd.dtype == torch.float32


def test_add_rms_norm():
    x, y, gamma = random(1, 2, 4), random(2, 2, 4), random(3, 4)
    out, rstd, total = torch_npu.npu_add_rms_norm(*(torch.tensor(a) for a in (x, y, gamma)))
    s = x + y
    np.testing.assert_allclose(
        out.numpy(), s / np.sqrt((s * s).mean(-1, keepdims=True) + 1e-6) * gamma, atol=1e-10
    )
    np.testing.assert_allclose(total.numpy(), s)


@pytest.mark.parametrize("dim", [-1, 0, 1])
def test_swiglu(dim):
    def formula(x):
        a, b = np.split(x, 2, dim)
        return a / (1 + np.exp(-a)) * b

    check(formula, lambda x: torch_npu.npu_swiglu(x, dim), [random(1, 4, 6, 2)])
    x, g = (
        torch.tensor(random(1, 4, 6, 2)).requires_grad_(),
        torch.tensor(random(2, 4, 6, 2)).narrow(dim, 0, 1),
    )
    out = torch_npu.npu_swiglu(x, dim=dim)
    g = torch.tensor(random(3, *out.shape))
    out.backward(g)
    assert torch.equal(torch_npu.npu_swiglu_backward(g, x.detach(), dim), x.grad)
    with pytest.raises(RuntimeError, match="cannot be halved"):
        torch_npu.npu_swiglu(torch.zeros(2, 3))


def turned(x, mode):
    if mode:
        out = np.empty_like(x)
        out[..., 0::2], out[..., 1::2] = -x[..., 1::2], x[..., 0::2]
        return out
    a, b = np.split(x, 2, -1)
    return np.concatenate([-b, a], -1)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("angles", [(1, 3, 1, 4), (3, 1, 1, 4), (2, 3, 2, 4)])
def test_rotary(mode, angles):
    def formula(x, cos, sin):
        return x * cos + turned(x, mode) * sin

    x = random(1, 2, 3, 2, 4) if angles[0] != 3 else random(1, 3, 2, 2, 4)
    arrays = [x, random(2, *angles), random(3, *angles)]
    check(formula, lambda *a: torch_npu.npu_rotary_position_embedding(*a, mode), arrays)
    name = "interleave" if mode else "half"
    tensors = [torch.tensor(a) for a in arrays]
    np.testing.assert_allclose(torch_npu.npu_rotary_mul(*tensors, name).numpy(), formula(*arrays))
    for one in torch_npu.npu_apply_rotary_pos_emb(tensors[0], tensors[0], *tensors[1:], "BSND", name):
        np.testing.assert_allclose(one.numpy(), formula(*arrays))


def test_rotary_refuses():
    x = torch.zeros(1, 1, 1, 4)
    for arguments, text in [((x, x, x, 2), "mode must be"), ((x, x[..., :2], x[..., :2]), "one even size")]:
        with pytest.raises(RuntimeError, match=text):
            torch_npu.npu_rotary_position_embedding(*arguments)
    with pytest.raises(RuntimeError, match="rotary_mode"):
        torch_npu.npu_rotary_mul(x, x, x, "third")
    with pytest.raises(RuntimeError, match="layout must be"):
        torch_npu.npu_apply_rotary_pos_emb(x, x, x, x, "TND")


@pytest.mark.parametrize("triangle", [False, True])
def test_scaled_masked_softmax(triangle):
    mask = np.random.default_rng(4).random((2, 1, 4, 4)) < 0.5
    mask[0, 0, 1] = True

    def formula(x):
        hide = np.triu(np.ones((4, 4), bool), 1) if triangle else mask
        s = np.where(hide, -10000.0, x * 0.7)
        e = np.exp(s - s.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    check(
        formula,
        lambda x: torch_npu.npu_scaled_masked_softmax(x, torch.tensor(mask), 0.7, triangle),
        [random(1, 2, 3, 4, 4)],
    )
    with pytest.raises(RuntimeError, match="mask must be bool"):
        torch_npu.npu_scaled_masked_softmax(torch.zeros(1, 1, 2, 2), torch.zeros(1, 1, 2, 2))


@pytest.mark.parametrize("rms", [False, True])
@pytest.mark.parametrize("residual", [False, True])
def test_dropout_add_norm(rms, residual):
    x, weight, bias = random(1, 2, 3, 8), random(2, 8), random(3, 8)
    rest = random(4, 2, 3, 8) if residual else None
    row, layer = random(5, 2, 3), random(6, 8)
    args = [None if a is None else torch.tensor(a) for a in (x, weight, rest, bias, row, layer)]
    y, total, mask = norm.dropout_add_norm(*args, 0.0, 1e-5, True, False, rms, True)
    want = x * row[..., None] * layer + (0 if rest is None else rest)
    np.testing.assert_allclose(total.numpy(), want, atol=1e-10)
    centred = want if rms else want - want.mean(-1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + (0 if rms else bias)
    np.testing.assert_allclose(y.numpy(), normed, atol=1e-9)
    assert mask.all()
    torch.manual_seed(1)
    _, total, mask = norm.dropout_add_norm(*args, 0.4, 1e-5, True, False, rms, True)
    kept = mask.numpy()
    assert 0 < kept.sum() < kept.size
    dropped = x * row[..., None] * layer * kept / 0.6 + (0 if rest is None else rest)
    np.testing.assert_allclose(total.numpy(), dropped, atol=1e-10)
    with pytest.raises(RuntimeError, match="dropout probability"):
        norm.dropout_add_norm(*args, 1.5, 1e-5, True, False, rms, True)


@pytest.mark.parametrize("layout", ["SBH", "TND"])
def test_ring_attention_update_joins_parts_of_the_keys(layout):
    r = np.random.default_rng(1)
    if layout == "SBH":
        q, k, v = (torch.tensor(r.standard_normal((n, 2, 8))) for n in (5, 6, 6))
        parts, more, ends = [slice(0, 2), slice(2, 6)], [{}, {}, {}], None
    else:
        q, k, v = (torch.tensor(r.standard_normal((n, 2, 4))) for n in (5, 6, 6))
        parts, ends = [[0, 2, 3], [1, 4, 5]], torch.tensor([2, 5])
        more = [{"actual_seq_qlen": [2, 5], "actual_seq_kvlen": e} for e in ([2, 6], [1, 3], [1, 3])]
    whole = npu_fusion_attention(q, k, v, 2, layout, **more[0])
    if layout == "TND":
        parts = [[0, 2, 3], [1, 4, 5]]
    first, second = (
        npu_fusion_attention(q, k[p], v[p], 2, layout, **m) for p, m in zip(parts, more[1:], strict=True)
    )
    joined = torch_npu.npu_ring_attention_update(*first[:3], *second[:3], ends, layout)
    for mine, theirs in zip(joined, whole, strict=False):
        np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=1e-9)


def test_ring_attention_update_refuses():
    x, s = torch.zeros(2, 1, 4), torch.ones(1, 1, 2, 8)
    with pytest.raises(RuntimeError, match="layout must be"):
        torch_npu.npu_ring_attention_update(x, s, s, x, s, s, None, "BSH")
    with pytest.raises(RuntimeError, match="needs actual_seq_qlen"):
        torch_npu.npu_ring_attention_update(x, s, s, x, s, s, None, "TND")


@pytest.mark.parametrize("shape, gamma", [((), ()), ((2, 3), ()), ((3,), ()), ((2, 3), (2,)), ((3,), (2, 3))])
def test_gamma_holds_the_last_dimensions(shape, gamma):
    x, gamma = torch.ones(shape), torch.ones(gamma)
    calls = (
        lambda: torch_npu.npu_rms_norm(x, gamma),
        lambda: torch_npu.npu_add_rms_norm(x, x, gamma),
    )
    for call in calls:
        with pytest.raises(RuntimeError, match="must be the last dimensions of x"):
            call()
