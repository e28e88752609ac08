"""The defaults of the fused operators are torch_npu's, and every check takes what is at its limit and refuses what is beyond."""

from __future__ import annotations

import importlib
import inspect

import pytest

import msadapter as torch
from kernels_ascend import collective, norm, routing
from msadapter import torch_npu

MOST = 2147483647
_PREPARED = {
    "pse": None,
    "padding_mask": None,
    "atten_mask": None,
    "inner_precise": 0,
    "prefix": None,
    "actual_seq_qlen": None,
    "actual_seq_kvlen": None,
    "sparse_mode": 0,
    "gen_mask_parallel": True,
    "sync": False,
}
_OLD = {"pre_tockens": MOST, "next_tockens": MOST}
_NEW = {
    "pre_tokens": MOST,
    "next_tokens": MOST,
    "pse_type": 1,
    "q_start_idx": None,
    "kv_start_idx": None,
    "query_rope": None,
    "key_rope": None,
}
_BACK = {
    "softmax_max": None,
    "softmax_sum": None,
    "softmax_in": None,
    "attention_in": None,
    "scale_value": 1.0,
    "keep_prob": 1.0,
    "seed": 0,
    "offset": 0,
    "numels": 0,
}
_SHIFTED = {"padding_mask": None, "atten_mask": None, "pse_shift": None, "actual_seq_lengths": None}
_EXCHANGED = {
    "send_counts_tensor": None,
    "recv_counts_tensor": None,
    "mm_x": None,
    "mm_weight": None,
    "trans_gmm_weight": False,
    "trans_mm_weight": False,
}
# Documented by Ascend Extension for PyTorch 7; the functions of MindSpeed's extensions by its op_plugin sources.
DEFAULTS = {
    "attention_calls.npu_fusion_attention": {**_PREPARED, **_OLD, "scale": 1.0, "keep_prob": 1.0},
    "attention_calls.npu_fusion_attention_v2": {**_PREPARED, **_NEW, "scale": 1.0, "keep_prob": 1.0},
    "attention_calls.npu_fusion_attention_grad": {**_PREPARED, **_OLD, **_BACK},
    "attention_calls.npu_fusion_attention_grad_v2": {**_PREPARED, **_NEW, **_BACK},
    "attention_calls.npu_prompt_flash_attention": {
        **_SHIFTED,
        "num_heads": 1,
        "scale_value": 1.0,
        "pre_tokens": MOST,
        "next_tokens": 0,
        "input_layout": "BSH",
        "num_key_value_heads": 0,
        "actual_seq_lengths_kv": None,
        "sparse_mode": 0,
    },
    "attention_calls.npu_incre_flash_attention": {
        **_SHIFTED,
        "num_heads": 1,
        "scale_value": 1.0,
        "input_layout": "BSH",
        "num_key_value_heads": 0,
        "block_size": 0,
    },
    "batched.npu_alltoall_allgather_bmm": {
        "shard_type": 0,
        "act_type": 0,
        "need_allgather_out": False,
        "need_activation_feature": False,
    },
    "batched.npu_bmm_reducescatter_alltoall": {"shard_type": 0},
    "collective.npu_all_gather_base_mm": {
        "bias": None,
        "x1_scale": None,
        "x2_scale": None,
        "gather_index": 0,
        "gather_output": True,
        "comm_turn": 0,
    },
    "collective.npu_mm_reduce_scatter_base": {
        "reduce_op": "sum",
        "bias": None,
        "x1_scale": None,
        "x2_scale": None,
        "comm_turn": 0,
    },
    "collective.npu_mm_all_reduce_base": {
        "reduce_op": "sum",
        "bias": None,
        "antiquant_scale": None,
        "antiquant_offset": None,
        "x3": None,
        "dequant_scale": None,
        "pertoken_scale": None,
        "comm_quant_scale_1": None,
        "comm_quant_scale_2": None,
        "comm_turn": 0,
        "antiquant_group_size": 0,
    },
    "collective.npu_mm_all_reduce_add_rms_norm": {
        "reduce_op": "sum",
        "epsilon": 1e-06,
        "bias": None,
        "antiquant_scale": None,
        "antiquant_offset": None,
        "dequant_scale": None,
        "antiquant_group_size": 0,
        "comm_turn": 0,
    },
    "collective.npu_alltoallv_gmm": {**_EXCHANGED, "permute_out_flag": False},
    "collective.npu_gmm_alltoallv": _EXCHANGED,
    "grouped.npu_grouped_matmul": {
        **dict.fromkeys(
            ["bias", "scale", "offset", "antiquant_scale", "antiquant_offset", "per_token_scale"]
        ),
        **dict.fromkeys(
            ["group_list", "activation_input", "activation_quant_scale", "activation_quant_offset"]
        ),
        "split_item": 0,
        "group_type": None,
        "group_list_type": 0,
        "act_type": 0,
        "output_dtype": None,
        "tuning_config": None,
    },
    "hans.npu_hans_encode": {"statistic": False, "reshuff": False, "out": None},
    "hans.npu_hans_decode": {"reshuff": False, "out": None},
    "mindspeed.quant_gmm": {"group_list_type": 0, "output_dtype": 0, "act_type": 0},
    "mindspeed.weight_quant_gmm": {"group_list_type": 0, "act_type": 0},
    "mindspeed.ffn": dict.fromkeys(["expert_tokens", "expert_tokens_index", "bias1", "bias2"]),
    "optimizer.npu_apply_adam_w": {"max_grad_norm": None, "amsgrad": False, "maximize": False},
    "optimizer.npu_apply_fused_adamw_v2": {
        "lr": 1e-3,
        "beta1": 0.9,
        "beta2": 0.999,
        "weight_decay": 0.0,
        "eps": 1e-8,
        "amsgrad": False,
        "maximize": False,
    },
    "optimizer.npu_apply_fused_ema_adamw": {
        "lr": 1e-3,
        "ema_decay": 0.9999,
        "beta1": 0.9,
        "beta2": 0.999,
        "eps": 1e-8,
        "mode": 1,
        "bias_correction": True,
        "weight_decay": 0.0,
    },
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults(name):
    module, function = name.split(".")
    found = getattr(importlib.import_module(f"kernels_ascend.{module}"), function)
    parameters = inspect.signature(found).parameters.values()
    assert {p.name: p.default for p in parameters if p.default is not p.empty} == DEFAULTS[name]


def _attend(mode=0, layout="BSND", heads=2, q=(1, 3, 2, 4), k=None, v=None, dtype=torch.float32, **options):
    query, key, value = (torch.ones(s or q, dtype=dtype) for s in (q, k, v or k))
    return torch_npu.npu_fusion_attention(query, key, value, heads, layout, sparse_mode=mode, **options)


def _attend2(pse_type, pse, q=(1, 3, 2, 4), **options):
    x = torch.ones(q)
    return torch_npu.npu_fusion_attention_v2(x, x, x, 2, "BSND", pse_type=pse_type, pse=pse, **options)


def _mask(*shape, dtype=torch.bool):
    return torch.zeros(shape, dtype=dtype)


def _pattern():
    return torch.ones(2048, 2048, dtype=torch.bool).triu(1)


def _gating(k=1, rank=2, **options):
    return torch_npu.npu_moe_gating_top_k(torch.arange(8.0).reshape((1,) * (rank - 1) + (8,)), k, **options)


def _rotary(size=4, cos=(1, 1, 1, 4), sin=(1, 1, 1, 4), mode=0):
    return torch_npu.npu_rotary_position_embedding(
        torch.ones(1, 1, 1, size), torch.ones(cos), torch.ones(sin), mode
    )


def _normed(p=0.0, epsilon=1e-5, x=(1, 2, 4), weight=(4,)):
    options = [None] * 4
    return norm.dropout_add_norm(
        torch.ones(x), torch.ones(weight), *options, p, epsilon, False, False, True, True
    )


def _hans(dtype=torch.float32, count=4, mantissa=12, fixed=2, var=2, gaps=False):
    parts = [torch.zeros(n, dtype=torch.uint8) for n in (mantissa, fixed, var)]
    if gaps:
        parts[0] = torch.zeros(2 * mantissa, dtype=torch.uint8)[::2]
    out = (torch.zeros(256, dtype=torch.int32), *parts)
    return torch_npu.npu_hans_encode(torch.arange(float(count)).to(dtype), True, out=out)


def _unhans(dtype=torch.float32, count=4, mantissa=12, fixed=2, var=2):
    parts = [torch.zeros(n, dtype=torch.uint8) for n in (mantissa, fixed, var)]
    return torch_npu.npu_hans_decode(*parts, torch.zeros(256), out=torch.ones(count).to(dtype))


def _unpermute(tokens=(4, 3), indices=(4,), probs=None):
    places = torch.arange(4, dtype=torch.int32).reshape(indices)
    return torch_npu.npu_moe_token_unpermute(
        torch.ones(tokens), places, None if probs is None else torch.ones(probs)
    )


def _sections(sections, rows=3):
    return torch_npu.npu_mrope(
        torch.zeros(rows, 2, dtype=torch.long),
        torch.ones(2, 8),
        torch.ones(2, 8),
        torch.ones(4, 8),
        8,
        mrope_section=sections,
    )


# Each row: what is taken, what is refused, and a part of the refusal.
LIMITS = [
    (lambda: _attend(keep_prob=1.0), lambda: _attend(keep_prob=1.001), "keep_prob"),
    (lambda: _attend(keep_prob=0.001), lambda: _attend(keep_prob=0.0), "keep_prob"),
    (lambda: _attend(8, "TND", q=(3, 2, 4), atten_mask=_pattern(), actual_seq_qlen=[3], actual_seq_kvlen=[3]),
     lambda: _attend(9, atten_mask=_mask(3, 3)), "from 0 to 8"),
    (lambda: _attend(0), lambda: _attend(-1), "from 0 to 8"),
    (lambda: _attend(7, "TND", q=(3, 2, 4), atten_mask=_pattern(), actual_seq_qlen=[3], actual_seq_kvlen=[3]),
     lambda: _attend(7, atten_mask=_pattern()), "needs input_layout TND"),
    (lambda: _attend(5, atten_mask=_mask(1, 1, 3, 3), prefix=[1]),
     lambda: _attend(5, "TND", q=(3, 2, 4), atten_mask=_mask(3, 3), prefix=[1], actual_seq_qlen=[3],
                     actual_seq_kvlen=[3]), "pass sparse_mode 6"),
    (lambda: _attend(5, atten_mask=_mask(1, 1, 3, 3), prefix=[1]), lambda: _attend(5, atten_mask=_mask(3, 3)), "prefix"),
    (lambda: _attend(5, atten_mask=_mask(1, 1, 3, 3), prefix=[1]),
     lambda: _attend(5, atten_mask=_mask(3, 3), prefix=[1, 1]), "prefix"),
    (lambda: _attend(atten_mask=_mask(3, 3, dtype=torch.uint8)),
     lambda: _attend(atten_mask=_mask(3, 3, dtype=torch.float32)), "bool or uint8"),
    (lambda: _attend(atten_mask=_mask(1, 2, 3, 3)), lambda: _attend(atten_mask=_mask(1, 3, 3, 3)), "must have one of the shapes"),
    (lambda: _attend(atten_mask=_mask(1, 1, 3, 3)), lambda: _attend(atten_mask=_mask(3, 4)), "must have one of the shapes"),
    (lambda: _attend(2, atten_mask=_pattern()), lambda: _attend(2, atten_mask=_mask(3, 3)), "compressed atten_mask"),
    (lambda: _attend(2, atten_mask=_pattern()[None, None]),
     lambda: _attend(2, atten_mask=torch.stack([_pattern()] * 2)), "compressed atten_mask"),
    (lambda: _attend(2, atten_mask=_pattern()), lambda: _attend(2, atten_mask=_mask(2048, 2048)), "above the diagonal"),
    (lambda: _attend(layout="BSND"), lambda: _attend(layout="BDSN"), "BDSN"),
    (lambda: _attend(), lambda: _attend(q=(3, 2, 4)), "dimensions"),
    (lambda: _attend(dtype=torch.float64), lambda: _attend(dtype=torch.int32), ""),
    (lambda: _attend(heads=2), lambda: _attend(heads=1), ""),
    (lambda: _attend(heads=2, q=(1, 3, 8), layout="BSH"), lambda: _attend(heads=3, q=(1, 3, 8), layout="BSH"), ""),
    (lambda: _attend(heads=1, q=(1, 3, 8), layout="BSH"), lambda: _attend(heads=0, q=(1, 3, 8), layout="BSH"), ""),
    (lambda: _attend(k=(1, 5, 1, 4)), lambda: _attend(k=(1, 5, 3, 4)), ""),
    (lambda: _attend(k=(1, 5, 2, 4)), lambda: _attend(k=(1, 5, 2, 4), v=(1, 4, 2, 4)), ""),
    (lambda: _attend(k=(1, 5, 2, 4)), lambda: _attend(k=(2, 5, 2, 4)), ""),
    (lambda: _attend(k=(1, 5, 2, 4), v=(1, 5, 2, 6)), lambda: _attend(k=(1, 5, 2, 3), v=(1, 5, 2, 6)), ""),
    (lambda: _attend(layout="TND", q=(3, 2, 4), actual_seq_qlen=[1, 3], actual_seq_kvlen=[2, 3]),
     lambda: _attend(layout="TND", q=(3, 2, 4), actual_seq_qlen=[1, 3], actual_seq_kvlen=[3]), ""),
    (lambda: _attend(layout="TND", q=(3, 2, 4), actual_seq_qlen=[1, 3], actual_seq_kvlen=[2, 3]),
     lambda: _attend(layout="TND", q=(3, 2, 4), actual_seq_qlen=[1, 3]), ""),
    (lambda: _attend(layout="TND", q=(3, 2, 4), actual_seq_qlen=[3, 3], actual_seq_kvlen=[2, 3]),
     lambda: _attend(layout="TND", q=(3, 2, 4), actual_seq_qlen=[2, 1, 3], actual_seq_kvlen=[1, 2, 3]), ""),
    (lambda: _attend(layout="TND", q=(3, 2, 4), actual_seq_qlen=[3], actual_seq_kvlen=[3]),
     lambda: _attend(layout="TND", q=(3, 2, 4), actual_seq_qlen=[4], actual_seq_kvlen=[3]), ""),
    (lambda: _attend2(0, None), lambda: _attend2(-1, None), "pse_type"),
    (lambda: _attend2(3, torch.ones(2)), lambda: _attend2(4, torch.ones(2)), "pse_type"),
    (lambda: _attend2(2, torch.ones(2)), lambda: _attend2(2, None), ""),
    (lambda: _attend2(2, torch.ones(1, 2)), lambda: _attend2(2, torch.ones(3)), ""),
    (lambda: _attend2(3, torch.ones(2)), lambda: _attend2(3, torch.ones(2, dtype=torch.float16)), ""),
    (lambda: _attend2(1, torch.ones(1, 2, 3, 3)), lambda: _attend2(1, torch.ones(1, 2, 3, 3).half()), ""),
    (lambda: _attend2(1, torch.ones(1, 2, 1, 3)), lambda: _attend2(1, torch.ones(1, 2, 2, 3)), "does not fit"),
    (lambda: _attend2(1, torch.ones(1, 2, 3, 3)), lambda: _attend2(1, torch.ones(2, 3, 3)), "does not fit"),
    (lambda: _attend2(1, torch.ones(1, 2, 3, 3)), lambda: _attend2(1, torch.ones(1, 1, 3, 3)), "does not fit"),
    (lambda: _attend2(1, torch.ones(1, 2, 3, 3)), lambda: _attend2(1, torch.ones(1, 2, 3, 4)), "does not fit"),
    (lambda: _attend2(1, torch.ones(1, 2, 3, 3)), lambda: _attend2(1, torch.ones(2, 2, 3, 3)), "does not fit"),
    (lambda: _gating(8), lambda: _gating(9), "1 <= k <= E"),
    (lambda: _gating(1), lambda: _gating(0), "1 <= k <= E"),
    (lambda: _gating(1), lambda: _gating(1, rank=3), r"the shape \(T, E\)"),
    (lambda: _gating(bias=torch.ones(8)), lambda: _gating(bias=torch.ones(7)), "bias"),
    (lambda: _gating(group_count=1), lambda: _gating(group_count=0), "group_count"),
    (lambda: _gating(group_count=4, k_group=4), lambda: _gating(group_count=4, k_group=5), "group_count"),
    (lambda: _gating(group_count=4, k_group=1), lambda: _gating(group_count=4, k_group=0), "group_count"),
    (lambda: _gating(norm_type=1), lambda: _gating(norm_type=2), "norm_type"),
    (lambda: _gating(group_select_mode=1), lambda: _gating(group_select_mode=2), "group_select_mode"),
    (lambda: _gating(4, group_count=4, k_group=2), lambda: _gating(5, group_count=4, k_group=2), "are too small"),
    (lambda: _gating(group_count=4, group_select_mode=1), lambda: _gating(group_count=8, group_select_mode=1), "are too small"),
    (lambda: _rotary(mode=1), lambda: _rotary(mode=2), "mode"),
    (lambda: _rotary(), lambda: _rotary(cos=(1, 1, 1, 2), sin=(1, 1, 1, 2)), ""),
    (lambda: _rotary(), lambda: _rotary(sin=(1, 1, 2, 4)), ""),
    (lambda: _rotary(), lambda: _rotary(3, (1, 1, 1, 3), (1, 1, 1, 3)), ""),
    (lambda: torch_npu.npu_swiglu(torch.ones(2, 4)), lambda: torch_npu.npu_swiglu(torch.ones(2, 3)), "halved"),
    (lambda: torch_npu.npu_geglu(torch.ones(2, 4)), lambda: torch_npu.npu_geglu(torch.ones(2, 3)), "halved"),
    (lambda: torch_npu.npu_geglu(torch.ones(2, 4), -1, 0), lambda: torch_npu.npu_geglu(torch.ones(2, 4), -1, 2), "approximate"),
    (lambda: torch_npu.npu_rms_norm(torch.ones(2, 4), torch.ones(4)),
     lambda: torch_npu.npu_rms_norm(torch.ones(2, 4), torch.ones(2)), "last dimensions"),
    (lambda: torch_npu.npu_rms_norm(torch.ones(2, 4), torch.ones(2, 4)),
     lambda: torch_npu.npu_rms_norm(torch.ones(2, 4), torch.ones(())), "last dimensions"),
    (lambda: _normed(1.0), lambda: _normed(1.01), "between 0 and 1"),
    (lambda: _normed(0.0), lambda: _normed(-0.01), "between 0 and 1"),
    (lambda: _normed(epsilon=0.0), lambda: _normed(epsilon=-1e-9), "epsilon"),
    (lambda: _normed(), lambda: _normed(x=(2, 4)), "batch, length, hidden"),
    (lambda: _normed(), lambda: _normed(weight=(3,)), "batch, length, hidden"),
    (lambda: _hans(), lambda: _hans(mantissa=11), "do not fit"),
    (lambda: _hans(fixed=0, var=4), lambda: _hans(fixed=0, var=3), "do not fit"),
    (lambda: _hans(fixed=9, var=0), lambda: _hans(fixed=1), "do not fit"),
    (lambda: _hans(torch.bfloat16), lambda: _hans(torch.float64), "float32, float16 or bfloat16"),
    (lambda: _hans(torch.float16), lambda: _hans(torch.int32), "float32, float16 or bfloat16"),
    (lambda: _hans(), lambda: _hans(gaps=True), "contiguous"),
    (lambda: _hans(), lambda: torch_npu.npu_hans_encode(torch.ones(2)), "must be given"),
    (lambda: _unhans(), lambda: _unhans(mantissa=11), "fewer than the 4"),
    (lambda: _unhans(fixed=4, var=0), lambda: _unhans(fixed=3, var=0), "fewer than the 4"),
    (lambda: _unhans(torch.float16), lambda: _unhans(torch.int32), "float32, float16 or bfloat16"),
    (lambda: _unhans(), lambda: torch_npu.npu_hans_decode(*[torch.zeros(9, dtype=torch.uint8)] * 4), "must be given"),
    *(
        (lambda: _unpermute(), refused, "must have 2 dimensions and sorted_indices 1")
        for refused in (lambda: _unpermute((4, 3, 1)), lambda: _unpermute((4,)), lambda: _unpermute(indices=(4, 1)))
    ),
    (lambda: _unpermute(probs=(2, 2)), lambda: _unpermute(probs=(4,)), "T \\* K = 4"),
    (lambda: _unpermute(probs=(4, 1)), lambda: _unpermute(probs=(2, 3)), "T \\* K = 4"),
    (lambda: _sections([1, 1, 2]), lambda: _sections([1, 1, 1]), "must divide"),
    (lambda: _sections([2, 1, 1]), lambda: _sections([2, 2]), "must divide"),
]  # fmt: skip


@pytest.mark.parametrize("row", range(len(LIMITS)))
def test_limit(row):
    taken, refused, text = LIMITS[row]
    taken()
    with pytest.raises(RuntimeError, match=text or "npu_") as caught:
        refused()
    assert caught.type is RuntimeError  # a NotImplementedError is another answer


REFUSED = [
    lambda: torch_npu.npu_hans_encode(torch.ones(1), reshuff=True),
    lambda: torch_npu.npu_hans_decode(*[torch.zeros(9, dtype=torch.uint8)] * 4, reshuff=True),
    lambda: _attend(padding_mask=torch.ones(1)),
    lambda: collective._only_sum("max"),
    lambda: routing.npu_moe_distribute_dispatch(1),
]


@pytest.mark.parametrize("row", range(len(REFUSED)))
def test_what_is_not_supported(row):
    with pytest.raises(NotImplementedError, match="coverage"):
        REFUSED[row]()
