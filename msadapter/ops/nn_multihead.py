"""Multi-head attention as a function, and helpers for masks that modules use too."""

from __future__ import annotations

import math
import warnings

from .._values.base import Base
from .._values.dtype import ALL
from ._declare import composite, t
from ._functional import functional


def _none_or_dtype(input):
    """Return the dtype of a mask, or None if there is none."""
    if input is None:
        return None
    if isinstance(input, Base):
        return input.dtype
    raise RuntimeError("input to _none_or_dtype() must be None or torch.Tensor")


def _canonical_mask(mask, mask_name, other_type, other_name, target_type, check_other=True):
    """Return a boolean mask as an additive one (-inf where True). A floating point mask stays as it is."""
    if mask is None:
        return None
    if mask.dtype != ALL["bool"] and not mask.is_floating_point():
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(
            f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both "
            "instead.",
            stacklevel=3,
        )
    if mask.dtype == ALL["bool"]:
        return t.zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))
    return mask


def _in_projection_packed(q, k, v, w, b=None):
    """Project query, key and value with one stacked weight. Equal inputs are projected together."""
    size = q.size(-1)
    if k is v and q is k:
        packed = functional.linear(q, w, b)
        return tuple(part.contiguous() for part in packed.chunk(3, -1))
    w_q, w_k, w_v = w.chunk(3)
    b_q, b_k, b_v = (None, None, None) if b is None else b.chunk(3)
    if k is v:
        key, value = functional.linear(k, w[size:], None if b is None else b[size:]).chunk(2, -1)
        return functional.linear(q, w_q, b_q), key.contiguous(), value.contiguous()
    return functional.linear(q, w_q, b_q), functional.linear(k, w_k, b_k), functional.linear(v, w_v, b_v)


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None):
    """Project query, key and value with separate weights."""
    e_q, e_k, e_v = q.size(-1), k.size(-1), v.size(-1)
    for name, weight, size in (("query", w_q, e_q), ("key", w_k, e_k), ("value", w_v, e_v)):
        if tuple(weight.shape) != (e_q, size):
            raise AssertionError(f"expecting {name} weights shape of {(e_q, size)}, but got {weight.shape}")
    return functional.linear(q, w_q, b_q), functional.linear(k, w_k, b_k), functional.linear(v, w_v, b_v)


def _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads):
    """Return whether the inputs have a batch dimension. AssertionError if their ranks do not fit."""
    if query.dim() not in (2, 3):
        raise AssertionError(
            f"query should be unbatched 2D or batched 3D tensor but received {query.dim()}-D query tensor"
        )
    batched = query.dim() == 3
    kind = "batched (3-D)" if batched else "unbatched (2-D)"
    n = query.dim()
    if key.dim() != n or value.dim() != n:
        raise AssertionError(
            f"For {kind} `query`, expected `key` and `value` to be {n}-D but found {key.dim()}-D and "
            f"{value.dim()}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.dim() != n - 1:
        raise AssertionError(
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {n - 1}-D but found "
            f"{key_padding_mask.dim()}-D tensor instead"
        )
    if attn_mask is not None:
        if attn_mask.dim() not in (2, 3):
            raise AssertionError(
                f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
                f"{attn_mask.dim()}-D tensor instead"
            )
        if not batched and attn_mask.dim() == 3:
            expected = (num_heads, query.shape[0], key.shape[0])
            if tuple(attn_mask.shape) != expected:
                raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {attn_mask.shape}")
    return batched


def _check_attn_mask(attn_mask, batch, num_heads, length, source):
    """Return ``attn_mask`` with a leading dimension. RuntimeError if its sizes are wrong."""
    if attn_mask.dim() == 2:
        if tuple(attn_mask.shape) != (length, source):
            raise RuntimeError(
                f"The shape of the 2D attn_mask is {attn_mask.shape}, but should be {(length, source)}."
            )
        return attn_mask.unsqueeze(0)
    if attn_mask.dim() == 3:
        expected = (batch * num_heads, length, source)
        if tuple(attn_mask.shape) != expected:
            raise RuntimeError(
                f"The shape of the 3D attn_mask is {attn_mask.shape}, but should be {expected}."
            )
        return attn_mask
    raise RuntimeError(f"attn_mask's dimension {attn_mask.dim()} is not supported")


def _heads_first(x, batch, num_heads, head_dim):
    """Reorder (L, N, E) to (N * heads, L, head_dim)."""
    return x.view(x.shape[0], batch * num_heads, head_dim).transpose(0, 1)


def _static(value, name, batch, num_heads, head_dim):
    if value.size(0) != batch * num_heads:
        raise AssertionError(f"expecting {name}.size(0) of {batch * num_heads}, but got {value.size(0)}")
    if value.size(2) != head_dim:
        raise AssertionError(f"expecting {name}.size(2) of {head_dim}, but got {value.size(2)}")
    return value


def _merge_masks(attn_mask, key_padding_mask, batch, num_heads, source):
    """Combine both masks into one additive mask."""
    if key_padding_mask is None:
        return attn_mask
    if tuple(key_padding_mask.shape) != (batch, source):
        raise AssertionError(
            f"expecting key_padding_mask shape of {(batch, source)}, but got {key_padding_mask.shape}"
        )
    padding = key_padding_mask.view(batch, 1, 1, source).expand(-1, num_heads, -1, -1)
    padding = padding.reshape(batch * num_heads, 1, source)
    return padding if attn_mask is None else attn_mask + padding


def _projected(query, key, value, weights, in_proj_bias, separate):
    in_proj_weight, w_q, w_k, w_v = weights
    if not separate:
        if in_proj_weight is None:
            raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
        return _in_projection_packed(query, key, value, in_proj_weight, in_proj_bias)
    for name, weight in (("q", w_q), ("k", w_k), ("v", w_v)):
        if weight is None:
            raise AssertionError(f"use_separate_proj_weight is True but {name}_proj_weight is None")
    biases = (None, None, None) if in_proj_bias is None else in_proj_bias.chunk(3)
    return _in_projection(query, key, value, w_q, w_k, w_v, *biases)


def _checked_shapes(query, key, value, embed_dim_to_check, num_heads, separate):
    embed_dim = query.shape[2]
    if embed_dim != embed_dim_to_check:
        raise AssertionError(
            f"was expecting embedding dimension of {embed_dim_to_check}, but got {embed_dim}"
        )
    head_dim = embed_dim // num_heads
    if head_dim * num_heads != embed_dim:
        raise AssertionError(f"embed_dim {embed_dim} not divisible by num_heads {num_heads}")
    if separate:
        if key.shape[:2] != value.shape[:2]:
            raise AssertionError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
    elif key.shape != value.shape:
        raise AssertionError(f"key shape {key.shape} does not match value shape {value.shape}")
    return head_dim


@composite(
    "nn.functional.multi_head_attention_forward(Tensor query, Tensor key, Tensor value, "
    "int embed_dim_to_check, int num_heads, Tensor? in_proj_weight, Tensor? in_proj_bias, "
    "Tensor? bias_k, Tensor? bias_v, bool add_zero_attn, float dropout_p, Tensor out_proj_weight, "
    "Tensor? out_proj_bias, bool training=True, Tensor? key_padding_mask=None, "
    "bool need_weights=True, Tensor? attn_mask=None, bool use_separate_proj_weight=False, "
    "Tensor? q_proj_weight=None, Tensor? k_proj_weight=None, Tensor? v_proj_weight=None, "
    "Tensor? static_k=None, Tensor? static_v=None, bool average_attn_weights=True, "
    "bool is_causal=False) -> (Tensor, any)",
    forms="f",
    random="other",
)
def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training,
    key_padding_mask,
    need_weights,
    attn_mask,
    use_separate_proj_weight,
    q_proj_weight,
    k_proj_weight,
    v_proj_weight,
    static_k,
    static_v,
    average_attn_weights,
    is_causal,
):
    """Attention with ``num_heads`` heads: query (L, N, E), key (S, N, Ek), value (S, N, Ev), or all without
    N.

    Returns:
        (output (L, N, E), weights). The weights are (N, L, S), averaged over heads, or (N, heads, L, S), or
        None.
    """
    batched = _mha_shape_check(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        # An input that is given three times stays one object, because equal inputs are recognised by
        # identity.
        lifted = {id(x): x.unsqueeze(1) for x in (query, key, value)}
        query, key, value = (lifted[id(x)] for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, embed_dim = query.shape
    source = key.shape[0]
    padding = _canonical_mask(
        key_padding_mask, "key_padding_mask", _none_or_dtype(attn_mask), "attn_mask", query.dtype
    )
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    hint_is_enough = is_causal and padding is None and not need_weights
    mask = None if hint_is_enough else _canonical_mask(attn_mask, "attn_mask", None, "", query.dtype, False)
    head_dim = _checked_shapes(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    q, k, v = _projected(
        query,
        key,
        value,
        (in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight),
        in_proj_bias,
        use_separate_proj_weight,
    )
    if mask is not None:
        mask = _check_attn_mask(mask, batch, num_heads, length, source)
    k, v, added = _with_bias(k, v, bias_k, bias_v, static_k, static_v, batch)
    q = _heads_first(q, batch, num_heads, head_dim)
    k = _as_heads(k, static_k, "static_k", batch, num_heads, head_dim)
    v = _as_heads(v, static_v, "static_v", batch, num_heads, head_dim)
    if add_zero_attn:
        zero = t.zeros((batch * num_heads, 1, head_dim), dtype=k.dtype, device=k.device)
        k, v = t.cat([k, zero], 1), t.cat([v, zero], 1)
        added += 1
    # Columns that were added to the keys are never masked.
    if added and mask is not None:
        mask = functional.pad(mask, (0, added))
    if added and padding is not None:
        padding = functional.pad(padding, (0, added))
    mask = _merge_masks(mask, padding, batch, num_heads, k.size(1))
    dropout_p = dropout_p if training else 0.0

    if need_weights:
        context, weights = _weighted(q, k, v, mask, dropout_p)
        context = context.reshape(length * batch, embed_dim)
        weights = weights.view(batch, num_heads, length, weights.size(-1))
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        context, weights = _fused(q, k, v, mask, dropout_p, hint_is_enough, batch, num_heads), None
        context = context.reshape(batch * length, embed_dim)
    output = functional.linear(context, out_proj_weight, out_proj_bias).view(
        length, batch, out_proj_weight.size(0)
    )
    if batched:
        return output, weights
    return output.squeeze(1), None if weights is None else weights.squeeze(0)


def _with_bias(k, v, bias_k, bias_v, static_k, static_v, batch):
    """Return key and value with one more position, the biases, if there are any; and the number of added positions."""
    if bias_k is None or bias_v is None:
        return k, v, 0
    if static_k is not None:
        raise AssertionError("bias cannot be added to static key.")
    if static_v is not None:
        raise AssertionError("bias cannot be added to static value.")
    return t.cat([k, bias_k.repeat(1, batch, 1)]), t.cat([v, bias_v.repeat(1, batch, 1)]), 1


def _as_heads(x, static, name, batch, num_heads, head_dim):
    """Return a projected tensor, or the static one that replaces it, as (N * heads, length, head size)."""
    if static is None:
        return _heads_first(x, batch, num_heads, head_dim)
    return _static(static, name, batch, num_heads, head_dim)


def _weighted(q, k, v, mask, dropout_p):
    """Return (context (L, N * heads, head size), weights after dropout (N * heads, L, S))."""
    scores = (q * math.sqrt(1.0 / q.size(-1))) @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores + mask
    weights = functional.softmax(scores, -1)
    if dropout_p > 0.0:
        weights = functional.dropout(weights, dropout_p)
    return t.bmm(weights, v).transpose(0, 1), weights


def _fused(q, k, v, mask, dropout_p, is_causal, batch, heads):
    """Return the context (L, N, heads, head size) without computing the weights."""

    def four_dims(x):
        return x.view(batch, heads, x.size(1), x.size(2))

    if mask is not None:
        single = mask.size(0) == 1 and mask.dim() == 3
        mask = mask.unsqueeze(0) if single else mask.view(batch, heads, *mask.shape[-2:])
    attended = functional.scaled_dot_product_attention(
        four_dims(q), four_dims(k), four_dims(v), mask, dropout_p, is_causal
    )
    return attended.permute(2, 0, 1, 3)


@composite(
    "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, Tensor qkv_weight, "
    "Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, bool need_weights=True, "
    "bool average_attn_weights=True, int? mask_type=None) -> (Tensor, any)",
    forms="f",
)
def _native_multi_head_attention(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias, proj_weight,
                                 proj_bias, mask, need_weights, average_attn_weights, mask_type):  # fmt: skip
    """Attention without dropout of a batch (N, L, E), as torch.nn.MultiheadAttention calls it in evaluation.

    Args:
        mask: added to the scores. It is (L, S) if ``mask_type`` is 0, (N, S) if it is 1, and (N, heads, L, S) if it is 2.

    Returns:
        (output (N, L, E), weights (N, L, S) or (N, heads, L, S) or None).
    """
    turned = {id(x): x.transpose(0, 1) for x in (query, key, value)}
    if mask is not None and mask_type == 2:
        mask = mask.reshape(-1, *mask.shape[-2:])
    output, weights = multi_head_attention_forward(
        *(turned[id(x)] for x in (query, key, value)),
        embed_dim,
        num_head,
        qkv_weight,
        qkv_bias,
        None,
        None,
        False,
        0.0,
        proj_weight,
        proj_bias,
        training=False,
        key_padding_mask=mask if mask_type == 1 else None,
        need_weights=need_weights,
        attn_mask=None if mask_type == 1 else mask,
        average_attn_weights=average_attn_weights,
    )
    return output.transpose(0, 1), weights
