"""The functions of MindSpeed's C++ extensions, which `SomeOpBuilder().load()` returns.

The signatures are those of the C++ functions. Loading an extension that is not implemented here raises NotImplementedError.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import msadapter
from msadapter.ops import t

from . import adaptive_cp, attention_calls, batched, collective, grouped, norm, optimizer
from ._mapping import without_derivative

_GRADIENT_ARGUMENTS = (
    "pse",
    "padding_mask",
    "atten_mask",
    "softmax_max",
    "softmax_sum",
    "softmax_in",
    "attention_in",
    "scale_value",
    "keep_prob",
    "pre_tokens",
    "next_tokens",
    "inner_precise",
    "seed",
    "offset",
    "numels",
    "prefix",
    "actual_seq_qlen",
    "actual_seq_kvlen",
    "sparse_mode",
    "gen_mask_parallel",
    "sync",
    "pse_type",
    "q_start_idx",
    "kv_start_idx",
)


def _attention() -> dict[str, Callable]:
    def forward(*args):
        with msadapter.no_grad():
            return attention_calls.npu_fusion_attention_v2(*args)

    def backward(query, key, value, dy, head_num, input_layout, *rest):
        options = dict(zip(_GRADIENT_ARGUMENTS, rest, strict=True))
        return attention_calls.npu_fusion_attention_grad_v2(
            query, key, value, dy, head_num, input_layout, **options
        )[:4]

    return {"npu_fusion_attention_v2": forward, "npu_fusion_attention_grad_v2": backward}


def _gmm() -> dict[str, Callable]:
    return {
        "npu_gmm": grouped.gmm,
        "npu_gmm_backward": grouped.gmm_backward,
        "npu_gmm_backward_fusion": grouped.gmm_backward_fusion,
    }


_CODES = {None: msadapter.float16, 0: msadapter.float16, 1: msadapter.bfloat16, -1: msadapter.int8}


def quant_gmm(
    x, weight, scale, offset, per_token_scale, bias, group_list, group_list_type=0, output_dtype=0, act_type=0
) -> list:
    """Multiplies int8 rows by the int8 weights of their experts. output_dtype: 0 is float16, 1 is bfloat16."""
    return grouped.npu_grouped_matmul(
        x,
        weight,
        bias=bias or None,
        scale=scale,
        offset=offset,
        per_token_scale=per_token_scale,
        group_list=group_list,
        split_item=3,
        group_type=grouped.ROWS,
        group_list_type=group_list_type or 0,
        act_type=act_type or 0,
        output_dtype=_CODES[output_dtype],
    )


def weight_quant_gmm(
    x, weight, antiquant_scale, antiquant_offset, bias, group_list, group_list_type=0, act_type=0
) -> list:
    """Multiplies float rows by the int8 weights of their experts."""
    return grouped.npu_grouped_matmul(
        x,
        weight,
        bias=bias or None,
        antiquant_scale=antiquant_scale,
        antiquant_offset=antiquant_offset,
        group_list=group_list,
        split_item=3,
        group_type=grouped.ROWS,
        group_list_type=group_list_type or 0,
        act_type=act_type or 0,
    )


def _tensor_parallel_group(rank, size, domain):
    from megatron.core import parallel_state

    return parallel_state.get_tensor_model_parallel_group()


def _lcal() -> dict[str, Callable]:
    found = collective.Lcal(_tensor_parallel_group)
    names = (
        "pure_matmul",
        "matmul_all_reduce",
        "all_gather_matmul",
        "all_gather_matmul_v2",
        "matmul_reduce_scatter",
        "all_gather_matmul_reduce_scatter",
    )
    return {name: getattr(found, name) for name in names}


def reuse_data_ptr(destination, source, offset: int) -> None:
    """Makes destination share the memory of source, starting at `offset`, which counts elements of destination.

    Raises:
        RuntimeError: offset is negative, or destination would exceed the end of source.
    """
    if offset < 0:
        raise RuntimeError(f"Expect offset equal or greater than zero, got: {offset}")
    if (offset + destination.numel()) * destination.element_size() > source.numel() * source.element_size():
        raise RuntimeError(f"Offsets overflow, got: offset {offset} for {destination.numel()} elements")
    size, stride = destination.shape, destination.stride()
    destination.data = msadapter.empty(0, dtype=destination.dtype, device=destination.device).set_(
        source.untyped_storage(), offset, size, stride
    )


def ffn(
    x,
    weight1,
    weight2,
    activation,
    expert_tokens=None,
    expert_tokens_index=None,
    bias1=None,
    bias2=None,
    *quantized,
):
    """act(x @ weight1 + bias1) @ weight2 + bias2. With expert_tokens, each expert's rows use the expert's weights."""
    if any(one is not None for one in quantized[:8]):
        raise NotImplementedError(
            "mindspeed.npu_ffn: quantized operands are not supported (docs/coverage.md)"
        )
    act = {
        "relu": t.relu,
        "gelu": t.gelu,
        "fastgelu": lambda x: x * t.sigmoid(1.702 * x),
        "silu": t.silu,
    }.get(activation)
    if act is None:
        raise NotImplementedError(
            f"mindspeed.npu_ffn: activation {activation!r} is not supported (docs/coverage.md)"
        )
    rows = x.reshape(-1, x.shape[-1])
    groups, kind = (
        (expert_tokens_index, grouped.ENDS) if expert_tokens is None else (expert_tokens, grouped.COUNTS)
    )
    if groups is None:
        hidden = t.matmul(rows, weight1)
        out = t.matmul(act(hidden if bias1 is None else hidden + bias1), weight2)
        out = out if bias2 is None else out + bias2
    else:
        call = {"group_list": groups, "group_type": grouped.ROWS, "group_list_type": kind, "split_item": 3}
        biases = [None if b is None else [b] for b in (bias1, bias2)]
        hidden = grouped.npu_grouped_matmul([rows], [weight1], bias=biases[0], **call)[0]
        out = grouped.npu_grouped_matmul([act(hidden)], [weight2], bias=biases[1], **call)[0]
    return out.reshape(*x.shape[:-1], out.shape[-1])


@without_derivative
def npu_grouped_mat_mul_all_reduce(x, weight, bias, group_list, split_item, hcom, reduce_op, comm_turn):
    """Computes the products of groups and sums each over the processes."""
    kind = grouped.ROWS if group_list is not None else None
    found = grouped.npu_grouped_matmul(
        x, weight, bias=bias or None, group_list=group_list, split_item=split_item or 0, group_type=kind
    )
    return [collective.all_reduce(one, hcom, reduce_op) for one in found]


def _norm(*args):
    x0, weight, residual, bias, *rest = args
    return norm.dropout_add_norm(x0, weight, residual, bias, *rest)


def _add_rms_norm_(x1, x2, residual, *rest):
    y, normed = collective.npu_mm_all_reduce_add_rms_norm(x1, x2, residual, *rest)
    with msadapter.no_grad():
        residual.copy_(y)
    return residual, normed


def _matmul_add(x, weight, grad) -> None:
    grouped.matmul_add(x, weight, grad)


EXTENSIONS: dict[str, Callable[[], dict[str, Callable]]] = {
    "fusion_attention_v2": _attention,
    "grouped_matmul": _gmm,
    "grouped_matmul_v2": _gmm,
    "quant_grouped_matmul": lambda: {"npu_quant_gmm": quant_gmm},
    "weight_quant_grouped_matmul": lambda: {"npu_weight_quant_gmm": weight_quant_gmm},
    "npu_matmul_add_fp32": lambda: {"npu_matmul_add_fp32": _matmul_add},
    "npu_groupmatmul_add_fp32": lambda: {"npu_groupmatmul_add_fp32": grouped.npu_groupmatmul_add_fp32},
    "npu_ring_attention_update": lambda: {"npu_ring_attention_update": t.torch_npu_npu_ring_attention_update},
    "npu_rotary_position_embedding": lambda: {
        "npu_rotary_position_embedding": t.torch_npu_npu_rotary_position_embedding
    },
    "npu_moe_token_permute": lambda: {"npu_moe_token_permute": t.torch_npu_npu_moe_token_permute},
    "npu_moe_token_unpermute": lambda: {"npu_moe_token_unpermute": t.torch_npu_npu_moe_token_unpermute},
    "npu_apply_fused_adamw_v2": lambda: {"npu_apply_fused_adamw_v2": optimizer.npu_apply_fused_adamw_v2},
    "npu_apply_fused_ema_adamw": lambda: {"npu_apply_fused_ema_adamw": optimizer.npu_apply_fused_ema_adamw},
    "swiglu": lambda: {"swiglu": t.torch_npu_npu_swiglu},
    "rms_norm": lambda: {
        "rms_norm": lambda x, weight, epsilon=1e-6: t.torch_npu_npu_rms_norm(x, weight, epsilon)[0]
    },
    "npu_dropout_add_layer_norm": lambda: {"npu_dropout_add_layer_norm": _norm},
    "npu_ffn": lambda: {"npu_ffn": ffn},
    "npu_grouped_mat_mul_all_reduce": lambda: {
        "npu_grouped_mat_mul_all_reduce": npu_grouped_mat_mul_all_reduce
    },
    "npu_mm_all_reduce_add_rms_norm": lambda: {
        "npu_mm_all_reduce_add_rms_norm": collective.npu_mm_all_reduce_add_rms_norm
    },
    "npu_mm_all_reduce_add_rms_norm_": lambda: {"npu_mm_all_reduce_add_rms_norm_": _add_rms_norm_},
    "npu_alltoall_allgather_bmm": lambda: {"npu_alltoall_allgather_bmm": batched.npu_alltoall_allgather_bmm},
    "npu_bmm_reducescatter_alltoall": lambda: {
        "npu_bmm_reducescatter_alltoall": batched.npu_bmm_reducescatter_alltoall
    },
    "adaptive_cp": lambda: {
        name: getattr(adaptive_cp, name)
        for name in (
            "coarsen_mask",
            "search_kmeans",
            "get_mask_list_with_remap",
            "get_mask_list_without_remap",
        )
    },
    "lcal": _lcal,
    "algorithm": lambda: {"reuse_data_ptr": reuse_data_ptr},
}

# Functions that write to tensors that the caller passes.
IN_PLACE = {
    "coarsen_mask",
    "get_mask_list_with_remap",
    "get_mask_list_without_remap",
    "search_kmeans",
    "npu_apply_adam_w",
    "npu_apply_fused_adamw_v2",
    "npu_apply_fused_ema_adamw",
    "npu_grouped_matmul_add_",
    "npu_groupmatmul_add_fp32",
    "npu_hans_decode",
    "npu_hans_encode",
    "npu_matmul_add_fp32",
    "npu_mm_all_reduce_add_rms_norm_",
    "reuse_data_ptr",
    *_lcal(),
}

_loaded: dict[str, SimpleNamespace] = {}


def load(name: str) -> SimpleNamespace:
    """The functions of an extension. Raises NotImplementedError if there is no extension of this name."""
    if name not in _loaded:
        if name not in EXTENSIONS:
            raise NotImplementedError(
                f"mindspeed: the extension {name!r} is not supported (docs/coverage.md)"
            )
        _loaded[name] = SimpleNamespace(**EXTENSIONS[name]())
    return _loaded[name]
