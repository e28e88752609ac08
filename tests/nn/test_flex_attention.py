"""torch.nn.attention.flex_attention against PyTorch's answers, and its gradients, which PyTorch does not have on a CPU."""

from __future__ import annotations

import pytest

import msadapter as torch
from msadapter.nn.attention.flex_attention import AuxRequest, create_block_mask, flex_attention
from msadapter.utils import _pytree
from tests.batches import together
from tests.golden.suites import cases
from tests.golden.verdict import check

CASES = cases("flex_attention")


@together(CASES)
def test_case(name):
    check("flex_attention", name, CASES[name], torch)


def _causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def test_gradients_are_those_of_the_dense_attention():
    torch.manual_seed(4)
    q, k, v = (torch.randn(2, heads, 6, 8, requires_grad=True) for heads in (4, 2, 2))
    bias = torch.randn(4, 6, 6, requires_grad=True)

    def biased(score, b, h, q_idx, kv_idx):
        return score + bias[h, q_idx, kv_idx]

    mask = create_block_mask(_causal, None, None, 6, 6, device="cpu")
    out, aux = flex_attention(q, k, v, biased, mask, enable_gqa=True, return_aux=AuxRequest(True, True))
    keys, values = (x.repeat_interleave(2, 1) for x in (k, v))
    scores = (q @ keys.mT / 8**0.5 + bias).masked_fill(torch.ones(6, 6).triu(1).bool(), -float("inf"))
    torch.testing.assert_close(aux.lse, scores.logsumexp(-1), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(aux.max_scores, scores.amax(-1), rtol=1e-5, atol=1e-5)
    expected = scores.softmax(-1) @ values
    torch.testing.assert_close(out, expected, rtol=1e-5, atol=1e-5)
    weights = torch.randn(out.shape)
    ours = torch.autograd.grad(out, (q, k, v, bias), weights)
    for found, wanted in zip(ours, torch.autograd.grad(expected, (q, k, v, bias), weights), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_autocast_gives_results_of_its_dtype():
    q, k, v = (torch.randn(1, 2, 4, 8) for _ in range(3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        lower = flex_attention(q, k, v)
    wanted = flex_attention(*(x.bfloat16() for x in (q, k, v)))
    assert lower.dtype == torch.bfloat16 and torch.equal(lower, wanted)


def test_a_mask_is_a_tree_of_its_lists():
    mask = create_block_mask(_causal, 1, 1, 300, 300, device="cpu")
    leaves, spec = _pytree.tree_flatten(mask)
    again = _pytree.tree_unflatten(leaves, spec)
    assert len(leaves) == 8 and torch.equal(again.to_dense(), mask.to_dense()) and again.mask_mod is _causal
    assert repr(mask.to("cpu")) == repr(mask)


def test_what_is_not_supported_says_so():
    for call in (
        lambda: create_block_mask(_causal, 1, 1, 4, 4, device="cpu", compute_dq_write_order=True),
        lambda: create_block_mask(_causal, 1, 1, 4, 4, device="cpu").from_kv_blocks(
            torch.ones(1, 1), torch.ones(1, 1, 1), dq_kv_order=True
        ),
    ):
        with pytest.raises(NotImplementedError, match=r"docs/coverage\.md"):
            call()
