"""First and second derivatives of every fused operator that has a gradient, by differences; what has none raises."""

from __future__ import annotations

import pytest

import msadapter as torch
from kernels_ascend import mindspeed
from kernels_ascend.__main__ import rows
from msadapter import torch_npu


def x(*shape, seed=0):
    source = torch.Generator().manual_seed(seed + 10 * len(shape))
    return torch.randn(*shape, generator=source, dtype=torch.float64).requires_grad_()


def extension(name, function=None):
    return getattr(mindspeed.load(name), function or name)


CHOSEN = torch.tensor([[True, False, True], [False, True, True]])
PLACES = torch_npu.npu_moe_token_permute_with_routing_map(torch.zeros(2, 2), CHOSEN)[2]
COPIES = torch.tensor([[1, 0], [0, 1]])
ROWS = torch_npu.npu_moe_token_permute(torch.zeros(2, 2), COPIES)[1]
SIZES, ENDS = torch.tensor([2, 1]), torch.tensor([2, 3])
POSITIONS, TABLE = torch.tensor([1, 0]), torch.randn(3, 4, dtype=torch.float64)
MASK = torch.tensor([[False, True], [False, False]])
KEYS = torch.tensor([[[0, -1], [1, 0], [0, 2]]], dtype=torch.int32).unsqueeze(2)
GATING = {"k_group": 1, "group_count": 2, "norm_type": 1}
PACKED = {"actual_seq_qlen": [1, 3], "actual_seq_kvlen": [2, 3]}

CASES = {
    "_npu_moe_token_unpermute_with_routing_map": (
        lambda y, p: torch_npu._npu_moe_token_unpermute_with_routing_map(
            y, PLACES, [2, 2], probs=p, routing_map=CHOSEN
        )[0],
        lambda: [x(4, 2), x(2, 3)],
    ),
    "npu_add_rms_norm": (
        lambda *a: torch_npu.npu_add_rms_norm(*a)[::2],
        lambda: [x(2, 3), x(2, 3, seed=1), x(3)],
    ),
    "npu_apply_rotary_pos_emb": (
        lambda q, k, c, s: torch_npu.npu_apply_rotary_pos_emb(q, k, c, s),
        lambda: [x(1, 2, 2, 4), x(1, 2, 1, 4), x(1, 2, 1, 4, seed=1), x(1, 2, 1, 4, seed=2)],
    ),
    "npu_fusion_attention": (
        lambda q, k, v, p: torch_npu.npu_fusion_attention(q, k, v, 2, "BNSD", pse=p, atten_mask=MASK)[0],
        lambda: [x(1, 2, 2, 3), x(1, 1, 2, 3), x(1, 1, 2, 3, seed=1), x(1, 2, 2, 2)],
    ),
    "npu_fusion_attention_v2": (
        lambda q, k, v, a, b: torch_npu.npu_fusion_attention_v2(
            q, k, v, 2, "TND", query_rope=a, key_rope=b, pse=torch.tensor([0.5, 0.25]), pse_type=2, **PACKED
        )[0],
        lambda: [x(3, 2, 2), x(3, 1, 2), x(3, 1, 2, seed=1), x(3, 2, 1), x(3, 1, 1)],
    ),
    "npu_grouped_matmul": (
        lambda a, w, b: torch_npu.npu_grouped_matmul(
            [a], [w], bias=[b], group_list=ENDS, split_item=3, group_type=0, act_type=5
        )[0],
        lambda: [x(4, 2), x(2, 2, 3), x(2, 3)],
    ),
    "npu_lightning_indexer": (
        lambda q, k, w: torch_npu.npu_lightning_indexer(q, k, w, sparse_count=2, return_value=True)[1][:, 1:],
        lambda: [x(1, 3, 2, 2), x(1, 3, 1, 2), x(1, 3, 2)],
    ),
    "npu_sparse_flash_attention": (
        lambda q, k, v, a, b: torch_npu.npu_sparse_flash_attention(
            q, k, v, KEYS, 0.7, query_rope=a, key_rope=b, attention_mode=2, return_softmax_lse=True
        )[0],
        lambda: [x(1, 3, 2, 2), x(1, 3, 1, 2), x(1, 3, 1, 2, seed=1), x(1, 3, 2, 1), x(1, 3, 1, 1)],
    ),
    "npu_moe_finalize_routing": (
        lambda y, s, b, p: torch_npu.npu_moe_finalize_routing(
            y, s, None, b, p, torch.tensor([2, 0, 1, 3]), torch.tensor([[0, 1], [2, 0]])
        ),
        lambda: [x(4, 2), x(2, 2), x(3, 2), x(2, 2, seed=1)],
    ),
    "npu_moe_gating_top_k": (lambda a: torch_npu.npu_moe_gating_top_k(a, 2, **GATING)[0], lambda: [x(2, 6)]),
    "npu_moe_token_permute": (
        lambda a: torch_npu.npu_moe_token_permute(a, COPIES, 3)[0] ** 2,
        lambda: [x(2, 2)],
    ),
    "npu_moe_token_permute_with_routing_map": (
        lambda a, p: torch_npu.npu_moe_token_permute_with_routing_map(a, CHOSEN, probs=p)[:2],
        lambda: [x(2, 2), x(2, 3)],
    ),
    "npu_moe_token_permute_with_routing_map_grad": (
        lambda g, p: torch_npu.npu_moe_token_permute_with_routing_map_grad(g, p, PLACES, CHOSEN, 3, 2, False),
        lambda: [x(4, 2), x(4)],
    ),
    "npu_moe_token_unpermute": (
        lambda y, p: torch_npu.npu_moe_token_unpermute(y, ROWS, p),
        lambda: [x(3, 2), x(2, 2)],
    ),
    "npu_moe_token_unpermute_with_routing_map": (
        lambda y, p: torch_npu.npu_moe_token_unpermute_with_routing_map(
            y, PLACES, [2, 2], probs=p, routing_map=CHOSEN
        ),
        lambda: [x(4, 2), x(2, 3)],
    ),
    "npu_moe_token_unpermute_with_routing_map_grad": (
        lambda g, y, p: torch_npu.npu_moe_token_unpermute_with_routing_map_grad(
            g, PLACES, PLACES, routing_map=CHOSEN, permuted_tokens=y, probs=p, restore_shape=[2, 2]
        ),
        lambda: [x(2, 2), x(4, 2), x(2, 3)],
    ),
    "npu_mrope": (lambda q, k: torch_npu.npu_mrope(POSITIONS, q, k, TABLE, 4), lambda: [x(2, 8), x(2, 4)]),
    "npu_ring_attention_update": (
        lambda *a: torch_npu.npu_ring_attention_update(
            a[0], *(b.expand(1, 2, 2, 8) for b in a[1:3]), a[3], *(b.expand(1, 2, 2, 8) for b in a[4:])
        ),
        lambda: [
            x(2, 1, 4),
            x(1, 2, 2, 1),
            positive(1, 2, 2, 1),
            x(2, 1, 4, seed=1),
            x(1, 2, 2, 1, seed=2),
            positive(1, 2, 2, 1),
        ],
    ),
    "npu_rms_norm": (lambda *a: torch_npu.npu_rms_norm(*a)[0], lambda: [x(2, 3), x(3)]),
    "npu_rotary_mul": (
        lambda *a: torch_npu.npu_rotary_mul(*a, "interleave"),
        lambda: [x(1, 2, 2, 4), x(1, 2, 1, 4), x(1, 2, 1, 4, seed=1)],
    ),
    "npu_rotary_position_embedding": (
        torch_npu.npu_rotary_position_embedding,
        lambda: [x(1, 2, 2, 4), x(1, 2, 1, 4), x(1, 2, 1, 4, seed=1)],
    ),
    "npu_scaled_masked_softmax": (
        lambda a: torch_npu.npu_scaled_masked_softmax(a, MASK, 0.7),
        lambda: [x(1, 1, 2, 2)],
    ),
    "npu_geglu": (torch_npu.npu_geglu, lambda: [x(2, 4)]),
    "npu_swiglu": (torch_npu.npu_swiglu, lambda: [x(2, 4)]),
    "npu_swiglu_backward": (torch_npu.npu_swiglu_backward, lambda: [x(2, 2), x(2, 4)]),
    "npu_gmm": (
        lambda a, w: extension("grouped_matmul", "npu_gmm")([a], [w], [], ENDS, 0, 0)[0],
        lambda: [x(3, 2), x(2, 2, 3)],
    ),
    "npu_gmm_backward": (
        lambda g, a, w: tuple(
            y[0] for y in extension("grouped_matmul", "npu_gmm_backward")([g], [a], [w], ENDS, 0)[:2]
        ),
        lambda: [x(3, 3), x(3, 2), x(2, 2, 3)],
    ),
    "npu_gmm_backward_fusion": (
        lambda g, w: extension("grouped_matmul", "npu_gmm_backward_fusion")([g], [w], ENDS, 0)[0][0],
        lambda: [x(3, 3), x(2, 2, 3)],
    ),
    "swiglu": (lambda a: extension("swiglu")(a, 0), lambda: [x(4, 2)]),
    "rms_norm": (lambda *a: extension("rms_norm")(*a), lambda: [x(2, 3), x(3)]),
    "npu_dropout_add_layer_norm": (
        lambda a, w, r, b, s, c: extension("npu_dropout_add_layer_norm")(
            a, w, r, b, s, c, 0.0, 1e-2, True, False, False, True
        )[:2],
        lambda: [x(1, 2, 3), x(3), x(1, 2, 3, seed=1), x(3, seed=1), x(1, 2), x(3, seed=2)],
    ),
    "npu_ffn": (
        lambda a, v, w: extension("npu_ffn")(a, v, w, "silu", SIZES),
        lambda: [x(3, 2), x(2, 2, 3), x(2, 3, 2)],
    ),
}

# What is differentiable in part, or through what the cases above hold already.
ELSEWHERE = {
    "npu_quant_gmm": "its operands are integers",
    "npu_weight_quant_gmm": "float32 inside: its gradients are those of npu_grouped_matmul",
}


def positive(*shape):
    return (x(*shape).detach().abs() + 1).requires_grad_()


@pytest.mark.parametrize("name", sorted(CASES))
def test_derivatives(name):
    function, inputs = CASES[name]
    leaves = inputs()
    assert torch.autograd.gradcheck(function, leaves)
    assert torch.autograd.gradgradcheck(function, leaves)


def test_every_operator_with_a_gradient_is_here():
    assert {name for name, gradient, *_ in rows() if gradient == "yes"} == set(CASES) | set(ELSEWHERE)
