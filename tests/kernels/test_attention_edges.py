"""npu_fusion_attention at its edges: how problems are cut into tiles, sequences without tokens, shapes that differ in
every dimension."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import msadapter as torch
from kernels_ascend import attention_tiles
from msadapter import torch_npu

TRIANGLE = torch.ones(2048, 2048, dtype=torch.bool).triu(1)


def numbers(seed, *shape):
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape))


class Everything:
    """Shows every key to every row, and notes which rows were asked for."""

    def columns(self, low, high, keys):
        return 0, keys


@pytest.mark.parametrize("batches, kv_heads, group", [(1, 1, 1), (3, 2, 1), (2, 4, 2), (4, 1, 3), (5, 2, 2)])
@pytest.mark.parametrize("queries, keys", [(1, 1), (3, 2), (4, 3), (7, 5), (2, 9)])
@pytest.mark.parametrize("each_its_own", [False, True])
def test_tiles_are_as_large_as_the_limit_allows(
    monkeypatch, batches, kv_heads, group, queries, keys, each_its_own
):
    """Tiles hold every score once, at most TILE scores or one head's, and as many rows, heads and batches as fit."""
    monkeypatch.setattr(attention_tiles, "ROWS", 3)
    for limit in (1, 8, 12, 24, 36, 72, 1000):
        monkeypatch.setattr(attention_tiles, "TILE", limit)
        p = attention_tiles.Dense(
            torch.zeros(batches, kv_heads * group, queries, 2),
            torch.zeros(batches, kv_heads, keys, 2),
            torch.zeros(batches, kv_heads, keys, 2),
            [Everything()] * (batches if each_its_own else 1),
        )
        found = list(attention_tiles.tiles(p))
        assert [t.number for t in found] == list(range(len(found)))
        seen = np.zeros((batches, kv_heads * group, queries, keys), int)
        for t in found:
            seen[t.b, t.n, t.rows, t.columns] += 1
            assert (t.n.start, t.n.stop) == (t.kv.start * group, t.kv.stop * group)
        assert (seen == 1).all()
        rows = min(queries, 3)
        one = rows * keys * group
        heads = max(n for n in range(1, kv_heads + 1) if n == 1 or n * one <= limit)
        together = 1
        if not each_its_own and heads == kv_heads:
            together = max(n for n in range(1, limit + 1) if n == 1 or n * heads * one <= limit)
        starts = [
            range(0, size, step) for size, step in ((batches, together), (kv_heads, heads), (queries, rows))
        ]
        assert [(t.b.start, t.kv.start, t.rows.start) for t in found] == list(itertools.product(*starts))


@pytest.mark.parametrize("lengths", [[0, 2, 3], [2, 0, 3], [2, 3, 0], [0, 0, 2], [0, 0]])
@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences_without_tokens(lengths, causal):
    """The other sequences give what they give alone, and the gradient."""
    total = sum(lengths)
    q, k, v, g = (numbers(i, total, n, 4) for i, n in enumerate((4, 2, 2, 4)))
    call = {"atten_mask": TRIANGLE, "sparse_mode": 2} if causal else {}

    def run(ends, *tensors):
        leaves = [x.clone().requires_grad_() for x in tensors[:3]]
        out = torch_npu.npu_fusion_attention(
            *leaves, 4, "TND", actual_seq_qlen=ends, actual_seq_kvlen=ends, scale=0.5, **call
        )[0]
        return out, torch.autograd.grad(out, leaves, tensors[3])

    out, grads = run(list(itertools.accumulate(lengths)), q, k, v, g)
    assert out.shape == q.shape
    start = 0
    for length in filter(None, lengths):
        own = slice(start, start + length)
        alone, theirs = run([length], *(x[own] for x in (q, k, v, g)))
        torch.testing.assert_close(out[own], alone)
        for mine, other in zip(grads, theirs, strict=True):
            torch.testing.assert_close(mine[own], other)
        start += length


@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (2, 2, 0, 4)])
def test_a_bias_where_nothing_attends_has_a_gradient_of_zeros(shape):
    query, key = (torch.zeros(shape), torch.zeros(*shape[:2], 5, 4))
    pse = torch.ones(*shape[:3], 5)
    out, top, total, *_ = torch_npu.npu_fusion_attention(query, key, key, 2, "BNSD", pse=pse)
    found = torch_npu.npu_fusion_attention_grad(
        query, key, key, out, 2, "BNSD", pse=pse, softmax_max=top, softmax_sum=total, attention_in=out
    )
    assert [x.shape for x in found[:4]] == [query.shape, key.shape, key.shape, pse.shape]
    assert not any(x.any() for x in found)
    leaf = torch.ones(1, 2, 1, 5, requires_grad=True)
    if shape[0]:
        torch_npu.npu_fusion_attention(query, key, key, 2, "BNSD", pse=leaf.expand(shape[0], -1, -1, -1))[
            0
        ].sum().backward()
        assert leaf.grad.shape == leaf.shape and not leaf.grad.any()


@pytest.mark.parametrize("mode", [0, 1, 2, 3, 4])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("sizes", [(2, 4, 2, 3, 5, 2), (1, 2, 1, 5, 3, 4), (3, 1, 1, 2, 4, 3)])
def test_derivatives_of_every_mode_with_sizes_that_differ(mode, biased, sizes):
    """Batches, heads, key heads, queries, keys and head size differ, so no dimension can stand for another."""
    b, n, kv, sq, sk, d = sizes
    shapes = [(b, n, sq, d), (b, kv, sk, d), (b, kv, sk, d), *[(b, n, sq, sk)] * biased]
    leaves = [numbers(i, *shape).requires_grad_() for i, shape in enumerate(shapes)]
    own = torch.ones(sq, sk, dtype=torch.bool).triu(2)
    call = {
        0: {"atten_mask": own, "pre_tokens": 3, "next_tokens": 2},
        1: {"atten_mask": own},
        2: {"atten_mask": TRIANGLE},
        3: {"atten_mask": TRIANGLE},
        4: {"atten_mask": TRIANGLE, "pre_tokens": 3, "next_tokens": 1},
    }[mode]

    def run(q, k, v, pse=None):
        return torch_npu.npu_fusion_attention_v2(
            q, k, v, n, "BNSD", pse=pse, sparse_mode=mode, scale=0.7, **call
        )[0]

    assert torch.autograd.gradcheck(run, leaves)
    assert torch.autograd.gradgradcheck(run, leaves, fast_mode=True)


@pytest.mark.parametrize("layout", ["BNSD", "BSND", "TND"])
def test_gradients_from_saved_outputs_with_rotary_parts(layout):
    """In every layout that has heads, with sizes that differ: the gradients that autograd computes."""
    b, n, kv, s, d, r, dv = 2, 4, 2, 3, 5, 1, 7

    def made(seed, heads, size):
        shape = {"BNSD": (b, heads, s, size), "BSND": (b, s, heads, size), "TND": (b * s, heads, size)}[
            layout
        ]
        return numbers(seed, *shape)

    parts = [made(0, n, d), made(1, kv, d), made(2, kv, dv), made(3, n, r), made(4, kv, r)]
    call = {"actual_seq_qlen": [s, 2 * s], "actual_seq_kvlen": [s, 2 * s]} if layout == "TND" else {}
    leaves = [x.clone().requires_grad_() for x in parts]
    out, top, total, *_ = torch_npu.npu_fusion_attention_v2(
        *leaves[:3], n, layout, scale=0.5, query_rope=leaves[3], key_rope=leaves[4], **call
    )
    g = torch.randn(out.shape, dtype=out.dtype)
    want = torch.autograd.grad(out, leaves, g)
    q, k, v, pse, rope_q, rope_k = torch_npu.npu_fusion_attention_grad_v2(
        *parts[:3],
        g,
        n,
        layout,
        softmax_max=top,
        softmax_sum=total,
        attention_in=out.detach(),
        scale_value=0.5,
        query_rope=parts[3],
        key_rope=parts[4],
        **call,
    )
    for mine, theirs in zip((q, k, v, rope_q, rope_k), want, strict=True):
        torch.testing.assert_close(mine, theirs)
    assert pse.numel() == 0


def test_no_call_takes_a_padding_mask():
    x = torch.zeros(1, 2, 3, 4)
    saved = {"softmax_max": x, "softmax_sum": x, "attention_in": x}
    heads = {"num_heads": 2, "input_layout": "BNSD"}
    for call in (
        lambda **more: torch_npu.npu_fusion_attention(x, x, x, 2, "BNSD", **more),
        lambda **more: torch_npu.npu_fusion_attention_v2(x, x, x, 2, "BNSD", **more),
        lambda **more: torch_npu.npu_fusion_attention_grad(x, x, x, x, 2, "BNSD", **saved, **more),
        lambda **more: torch_npu.npu_fusion_attention_grad_v2(x, x, x, x, 2, "BNSD", **saved, **more),
        lambda **more: torch_npu.npu_prompt_flash_attention(x, x, x, **heads, **more),
        lambda **more: torch_npu.npu_incre_flash_attention(x[:, :, :1], x, x, **heads, **more),
    ):
        with pytest.raises(NotImplementedError, match="padding_mask is not supported"):
            call(padding_mask=torch.zeros(3, 3, dtype=torch.bool))


def test_every_part_of_a_compressed_mask_is_checked():
    """Each element of a compressed mask is fixed. One that is not so is refused, wherever it is."""
    half = torch.zeros(1024, 2048, dtype=torch.bool)
    half[:, 1024:] = True
    good = {2: TRIANGLE, 6: torch.cat([TRIANGLE, half])}
    q = torch.zeros(1, 1, 2, 4)
    for mode, mask in good.items():
        call = {"sparse_mode": mode, "prefix": [1] if mode == 6 else None}
        torch_npu.npu_fusion_attention_v2(q, q, q, 1, "BNSD", atten_mask=mask.clone(), **call)
        rows, columns = mask.shape
        for row, column in itertools.product(
            (0, 1, 1023, 2047, *([2048, rows - 1] * (mode == 6))), (0, 1, 1023, 1024, 2047)
        ):
            wrong = mask.clone()
            wrong[row, column] ^= True
            with pytest.raises(RuntimeError, match="must be true above the diagonal"):
                torch_npu.npu_fusion_attention_v2(q, q, q, 1, "BNSD", atten_mask=wrong, **call)
        for wrong in (~mask, mask.flip(0), mask.flip(1), torch.zeros_like(mask), torch.ones_like(mask)):
            with pytest.raises(RuntimeError, match="must be true above the diagonal"):
                torch_npu.npu_fusion_attention_v2(q, q, q, 1, "BNSD", atten_mask=wrong, **call)
