"""torch.nn.attention.varlen and the functions that combine masks of torch.nn.attention.flex_attention."""

from __future__ import annotations

import pytest

import msadapter as torch
from msadapter.nn.attention import flex_attention
from msadapter.nn.attention.varlen import AuxRequest, varlen_attn

CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def _alone(q, k, v, causal: bool, scale=None):
    """Attention of one sequence; PyTorch's causal mask counts from the last key here, as FlashAttention's does."""
    seen = torch.ones(len(q), len(k), dtype=torch.bool)
    seen = seen.tril(len(k) - len(q)) if causal else seen
    heads = [x.transpose(0, 1).unsqueeze(0) for x in (q, k, v)]
    out = torch.nn.functional.scaled_dot_product_attention(
        *heads, attn_mask=seen, scale=scale, enable_gqa=True
    )
    return out.squeeze(0).transpose(0, 1)


def _ends(lengths) -> torch.Tensor:
    return torch.tensor([0, *lengths]).cumsum(0).int()


@pytest.mark.parametrize("window", [(-1, -1), (-1, 0)])
@pytest.mark.parametrize("lengths", [((3, 1, 6), (3, 1, 6)), ((2, 2), (5, 3))])
def test_each_sequence_attends_to_itself(lengths, window):
    torch.manual_seed(2)
    queries, keys = lengths
    q = torch.randn(sum(queries), 4, 8, requires_grad=True)
    k, v = (torch.randn(sum(keys), 2, 8, requires_grad=True) for _ in range(2))
    out = varlen_attn(
        q, k, v, _ends(queries), _ends(keys), 6, 6, window_size=window, scale=0.4, enable_gqa=True
    )
    parts = zip(q.split(queries), k.split(keys), v.split(keys), strict=True)
    expected = torch.cat([_alone(*part, window == (-1, 0), 0.4) for part in parts])
    torch.testing.assert_close(out, expected, **CLOSE)
    weights = torch.randn(out.shape)
    ours = torch.autograd.grad(out, (q, k, v), weights)
    for found, wanted in zip(ours, torch.autograd.grad(expected, (q, k, v), weights), strict=True):
        torch.testing.assert_close(found, wanted, **CLOSE)


def test_logarithms_of_the_sums_and_keys_that_count():
    torch.manual_seed(2)
    q, k, v = torch.randn(3, 2, 4), torch.randn(7, 2, 4), torch.randn(7, 2, 4)
    out, logarithms = varlen_attn(
        q,
        k,
        v,
        _ends((2, 1)),
        _ends((4, 3)),
        2,
        4,
        seqused_k=torch.tensor([2, 3]),
        return_aux=AuxRequest(lse=True),
    )
    scores = [torch.einsum("shd,thd->hst", *pair) / 2 for pair in ((q[:2], k[:2]), (q[2:], k[4:]))]
    torch.testing.assert_close(logarithms, torch.cat([s.exp().sum(-1).log() for s in scores], 1), **CLOSE)
    torch.testing.assert_close(out[:2], _alone(q[:2], k[:2], v[:2], False), **CLOSE)
    pages, table = torch.stack((k[4:6], k[:2], k[2:4])), torch.tensor([[1, 2]], dtype=torch.int32)
    paged = varlen_attn(
        q[:2], pages, pages, _ends((2,)), None, 2, 3, seqused_k=torch.tensor([3]), block_table=table
    )
    torch.testing.assert_close(paged, _alone(q[:2], k[:3], k[:3], False), **CLOSE)


def test_numbers_of_heads_that_do_not_fit():
    q, k = torch.ones(2, 3, 4), torch.ones(2, 2, 4)
    for options in ({}, {"enable_gqa": True}):
        with pytest.raises(ValueError, match="Hq=3 and Hkv=2"):
            varlen_attn(q, k, k, _ends((2,)), _ends((2,)), 2, 2, **options)


def test_masks_are_combined():
    b = h = torch.tensor(0)
    query, key = torch.arange(4).unsqueeze(1), torch.arange(4)

    def causal(b, h, q, k):
        return q >= k

    def near(b, h, q, k):
        return (q - k).abs() < 2

    both = flex_attention.and_masks(causal, near)(b, h, query, key)
    either = flex_attention.or_masks(causal, near)(b, h, query, key)
    assert torch.equal(both, torch.ones(4, 4).tril().triu(-1).bool())
    assert torch.equal(either, torch.ones(4, 4).tril(1).bool())
    assert flex_attention.and_masks()(b, h, query, key).item() and not flex_attention.or_masks()(
        b, h, query, key
    )
    assert flex_attention.noop_mask(b, h, query, key).item()
    with pytest.raises(RuntimeError, match="All inputs should be callable mask_mods"):
        flex_attention.and_masks(causal, 3)
