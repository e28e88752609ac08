"""Scaled dot product attention at the borders of its blocks, against float64 in NumPy, forward and backward."""

import numpy as np
import pytest

import msadapter as torch
from msadapter.nn.functional import scaled_dot_product_attention as attention

# (queries, keys, width, width of values): one block holds 96 or 192 queries and 256 keys, and oneDNN takes multiples of 16.
SHAPES = [
    (1, 1, 8, 8),
    (1, 300, 64, 16),
    (2, 257, 16, 24),
    (95, 96, 40, 16),
    (96, 256, 16, 16),
    (97, 255, 7, 5),
    (193, 513, 32, 64),
    (384, 256, 16, 16),
    (400, 400, 16, 8),
]
TOLERANCES = {torch.float64: 1e-12, torch.float32: 2e-6, torch.bfloat16: 2e-2, torch.float16: 3e-3}


def reference(q, k, v, grad, mask):
    """The output and the three gradients, in float64, for one head."""
    scale = q.shape[-1] ** -0.5
    scores = np.where(mask, q @ k.T * scale, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    out, slope = p @ v, grad @ v.T
    inner = p * (slope - (slope * p).sum(-1, keepdims=True)) * scale
    return out, inner @ k, inner.T @ q, p.T @ grad


@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_blocks_give_the_numbers_of_the_definition(shape, causal, dtype):
    queries, keys, width, wide = shape
    rng = np.random.default_rng(queries + keys)
    sizes = (queries, width), (keys, width), (keys, wide), (queries, wide)
    given = [torch.from_numpy(rng.standard_normal(size)).to(dtype) for size in sizes]
    leaves = [x[None, None].clone().requires_grad_() for x in given[:3]]
    out = attention(*leaves, is_causal=causal)
    out.backward(given[3][None, None])
    numbers = [x.double().numpy() for x in given]
    mask = np.tri(queries, keys, dtype=bool) if causal else np.ones((queries, keys), bool)
    wanted = reference(*numbers, mask)
    for got, want in zip((out, *(x.grad for x in leaves)), wanted, strict=True):
        assert got.dtype == dtype
        error = np.abs(got.detach().double().numpy()[0, 0] - want).max()
        assert error <= TOLERANCES[dtype] * max(1, np.abs(want).max()), error


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_numbers_that_are_not_finite_stay(dtype):
    q, k, v = (torch.randn(1, 1, n, 16, dtype=dtype) for n in (100, 300, 300))
    q[0, 0, 3, 0] = float("nan")
    q[0, 0, 5] = 0
    out = attention(q, k, v)
    assert out[0, 0, 3].isnan().all()
    assert out[0, 0, [0, 2, 4, 99]].isfinite().all()
    torch.testing.assert_close(out[0, 0, 5].float(), v[0, 0].float().mean(0), atol=1e-2, rtol=0)
    mask = torch.ones(100, 300, dtype=torch.bool)
    mask[7] = False
    mask[8, :299] = False
    out = attention(q, k, v, attn_mask=mask)
    assert (out[0, 0, 7] == 0).all()  # a query that attends to no key
    assert (out[0, 0, 8] == v[0, 0, 299]).all()
