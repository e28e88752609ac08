"""The MindSpore operators that the fused operators call on Ascend, with the names of their operands in order.

`ascend(name, operand=value, ...)` calls one and checks the names of its operands. tests/kernels/test_mapping.py compares
these names with MindSpore's own headers, so this part of the mapping is checked without a device.
"""

from __future__ import annotations

import functools

import msadapter
from msadapter._host import accelerator as _accelerator
from msadapter.ops._declare import raw

_ATTENTION_TAIL = (
    "scale keep_prob pre_tokens next_tokens inner_precise prefix actual_seq_qlen actual_seq_kvlen sparse_mode "
    "gen_mask_parallel sync pse_type q_start_idx kv_start_idx"
)
_ATTENTION_GRAD = (
    "query key value dy head_num input_layout pse padding_mask atten_mask softmax_max softmax_sum softmax_in "
    "attention_in scale_value keep_prob pre_tokens next_tokens inner_precise seed offset numels prefix "
    "actual_seq_qlen actual_seq_kvlen sparse_mode gen_mask_parallel sync pse_type q_start_idx kv_start_idx"
)

OPERATORS: dict[str, tuple[str, ...]] = {
    name: tuple(operands.split())
    for name, operands in {
        "SpeedFusionAttention": "query key value head_num input_layout seed offset pse padding_mask atten_mask "
        + _ATTENTION_TAIL,
        "SpeedFusionAttentionGrad": _ATTENTION_GRAD,
        "RmsNorm": "x gamma epsilon",
        "RmsNormGrad": "dy x rstd gamma",
        "AddRmsNorm": "x1 x2 gamma epsilon",
        "Swiglu": "input dim",
        "SwigluGrad": "grad_output input dim",
        "RotaryPositionEmbedding": "x cos sin mode",
        "RotaryPositionEmbeddingGrad": "dy cos sin dx mode",
        "MoeTokenPermute": "tokens indices num_out_tokens padded_mode",
        "MoeTokenPermuteGrad": "permuted_tokens_grad sorted_indices num_topk padded_mode",
        "MoeTokenUnpermute": "permuted_tokens sorted_indices probs padded_mode restore_shape",
        "MoeTokenUnpermuteGrad": "permuted_tokens unpermuted_tokens_grad sorted_indices probs padded_mode "
        "restore_shape",
        "MoeGatingTopKSoftmax": "x finished k",
        "MoeInitRouting": "x row_idx expert_idx active_num",
        "MoeFinalizeRouting": "expanded_x x1 x2 bias scales expanded_row_idx expanded_expert_idx",
        "MoeComputeExpertTokens": "sorted_experts num_expert",
        "GroupedMatmulV4": "x weight bias scale offset antiquant_scale antiquant_offset pre_token_scale group_list "
        "activation_input activation_quant_scale activation_quant_offset split_item group_type group_list_type "
        "act_type output_dtype",
        "InplaceMatmulAdd": "x weight C",
        "InplaceGroupedMatmulAdd": "x weight group_list out",
        "RingAttentionUpdate": "prev_attn_out prev_softmax_max prev_softmax_sum cur_attn_out cur_softmax_max "
        "cur_softmax_sum actual_seq_qlen layout",
        "AdamW": "var m v max_v gradient step lr beta1 beta2 decay eps amsgrad maximize",
        "AllGatherMatmul": "input x2 group world_size bias gather_index gather_output comm_turn trans_input "
        "trans_x2",
        "MatmulReduceScatter": "input x2 group world_size reduce_op bias comm_turn trans_input trans_x2",
    }.items()
}

# Composites for which MindSpore has a single operator. It is not called yet, because its operands need a test on a device.
NOT_CALLED = {
    "all_gather_matmul": "AllGatherMatmul",
    "matmul_reduce_scatter": "MatmulReduceScatter",
    "npu_ffn": "FFNExt",
    "npu_mm_all_reduce_add_rms_norm": "MatmulAllReduceAddRmsNorm",
    "npu_moe_distribute_combine": "MoeDistributeCombine",
    "npu_moe_distribute_dispatch": "MoeDistributeDispatch",
}

# MindSpore expects a layout as a number of its enumeration FASInputLayoutMode.
LAYOUTS = {"BSH": 0, "BNSD": 1, "SBH": 2, "BSND": 3, "TND": 4}


def on_ascend(tensor) -> bool:
    """True if the tensor is in an NPU's memory; False on the host, also where the host acts as the device npu."""
    return not _accelerator.on_host() and tensor.device.type != "cpu"


UNDERIVABLE: set[str] = set()  # operators whose results cannot be differentiated


def no_derivative(name: str):
    """A gradient function that raises NotImplementedError, for operators without a derivative."""

    UNDERIVABLE.add(name)

    def refuse(g):
        raise NotImplementedError(f"derivative for {name} is not implemented (docs/coverage.md)")

    return refuse


def _tensors(values) -> list:
    """The tensors among the values, including those inside lists."""
    found = []
    for x in values:
        if isinstance(x, (list, tuple)):
            found += _tensors(x)
        elif isinstance(x, msadapter.Tensor):
            found.append(x)
    return found


def without_derivative(function):
    """Wraps `function` so that backward() through its results raises NotImplementedError."""
    name = function.__name__
    refuse = no_derivative(name)

    @functools.wraps(function)
    def run(*args, **kwargs):
        inputs = _tensors([*args, *kwargs.values()])
        if not msadapter.is_grad_enabled() or not any(x.requires_grad for x in inputs):
            return function(*args, **kwargs)
        from msadapter.autograd import Function

        class Underivable(Function):
            @staticmethod
            def forward(ctx, found, *inputs):
                return found.view_as(found)

            @staticmethod
            def backward(ctx, g):
                return refuse(g)

        def marked(x):
            return (
                Underivable.apply(x, *inputs)
                if isinstance(x, msadapter.Tensor) and x.is_floating_point()
                else x
            )

        with msadapter.no_grad():
            found = function(*args, **kwargs)
        return type(found)(map(marked, found)) if isinstance(found, (list, tuple)) else marked(found)

    return run


def ascend(name: str, **operands):
    """Calls MindSpore's operator `name`. All its operands must be given by name, in its order."""
    if tuple(operands) != OPERATORS[name]:
        raise TypeError(f"{name} takes {', '.join(OPERATORS[name])}; got {', '.join(operands)}")
    return getattr(raw, name)(*operands.values())
