"""Scaled dot product attention: a fused operator where it takes the inputs, the plain formula elsewhere.

On the host the fused operator is a tiled kernel. On an NPU it is CANN's FlashAttentionScore.
"""

from __future__ import annotations

import math

from .._errors import unsupported
from .._values.dtype import ALL
from . import _generator
from ._declare import _C, composite, op, raw, t
from .nn_norm import gradients_of, recording


def _reference(query, key, value, attn_mask, is_causal, scale, dropout_p=0.0):
    """softmax(scale q k^T + mask) v, with operators of the table.

    Key and value heads are repeated if there are fewer of them than query heads.
    """
    if key.dim() > 2 and query.shape[-3] > key.shape[-3]:
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3)
    kind = query.dtype
    if kind.itemsize == 2:  # PyTorch's formula also computes 16-bit inputs in float32
        query, key, value = (x.float() for x in (query, key, value))
    root = math.sqrt(abs(scale))
    scores = t.matmul(query * root, (key * math.copysign(root, scale)).transpose(-2, -1))
    if is_causal:
        keep = t.ones(
            query.shape[-2], key.shape[-2], dtype=(query == query).dtype, device=query.device
        ).tril()
        scores = scores.masked_fill(~keep, float("-inf"))
    if attn_mask is not None:
        if attn_mask.dtype == (query == query).dtype:
            scores = scores.masked_fill(~attn_mask, float("-inf"))
        else:
            scores = scores + attn_mask
    weights = t._safe_softmax(scores, -1)
    if dropout_p > 0:
        weights = t.dropout(weights, dropout_p, True)
    return t.matmul(weights, value).to(kind)


def _flash_grad(gs, query, key, value, attn_mask, is_causal, scale, result0, result1, needs):
    g = gs[0]
    if g is None:
        return None, None, None
    if recording():
        return gradients_of(
            lambda q, k, v: _reference(q, k, v, attn_mask, is_causal, scale), (query, key, value), needs, g
        )
    return raw.ScaledDotProductAttentionGrad(
        query, key, value, attn_mask, is_causal, scale, g, result0, result1
    )


op(
    "_flash_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask, bool is_causal, float scale) -> (Tensor, Tensor)",
    ms="ScaledDotProductAttention",
    forms="f",
    autocast="lower",
    grad={("query", "key", "value"): _flash_grad},
    whole=True,
)


# FlashAttentionScore. MindSpore's number of the layout (batch, heads, length, size), and the words of CANN's document.
_BNSD = 1
_UNBOUNDED = 2147483647
_MOST_HEADS, _LARGEST_SIZE, _LONGEST = 256, 512, 1 << 20
_COMPRESSED = 2048  # rows and columns of the mask that stands for a causal mask of any length
_FULL_MASK, _CAUSAL_MASK = 0, 2  # sparse_mode: the mask is given as a whole, or as a triangle of 2048 rows


def _npu_mask_fits(attn_mask, query, key) -> bool:
    """Whether FlashAttentionScore takes the mask: bools, for (batch or 1, heads or 1, queries, keys)."""
    if attn_mask is None:
        return True
    pair = (query.shape[2], key.shape[2])
    if attn_mask.dtype is not ALL["bool"] or attn_mask.shape[-2:] != pair or attn_mask.dim() not in (2, 4):
        return False
    lead = tuple(attn_mask.shape[:-2])
    return lead in ((), (1, 1), (query.shape[0], 1), tuple(query.shape[:2]))


def _npu_takes(query, key, value, attn_mask) -> bool:
    """Whether FlashAttentionScore takes the operands, by the limits of its document and those that torch_npu sets."""
    if (
        query.dtype not in (ALL["float16"], ALL["bfloat16"])
        or not query.dim() == key.dim() == value.dim() == 4
    ):
        return False
    if 0 in (*query.shape, *key.shape, *value.shape):
        return False
    (batch, heads, length, size), (_, kv_heads, keys, _) = query.shape, key.shape
    return (
        key.shape[:3] == value.shape[:3]
        and (key.shape[0], key.shape[3]) == (batch, size)
        and value.shape[3] == size <= _LARGEST_SIZE
        and heads <= _MOST_HEADS
        and heads % kv_heads == 0
        and max(length, keys) <= _LONGEST
        and _npu_mask_fits(attn_mask, query, key)
    )


def _npu_attention(query, key, value, attn_mask, dropout_p, is_causal, scale):
    """Attention by FlashAttentionScore, whose mask is true where a key is hidden."""
    mode, hidden = _FULL_MASK, None
    if is_causal:
        rows, columns = query.shape[2], key.shape[2]
        if max(rows, columns) > _COMPRESSED and attn_mask is None:
            mode, rows, columns = _CAUSAL_MASK, _COMPRESSED, _COMPRESSED
        hidden = t.ones(rows, columns, dtype=ALL["bool"], device=query.device).triu(1)
    if attn_mask is not None:
        hidden = ~attn_mask if hidden is None else hidden | ~attn_mask
    seed, offset = _generator.operands(None, _C.device_tag(query)) if dropout_p else (None, None)
    return t._npu_flash_attention(
        query, key, value, hidden, 1.0 - dropout_p, mode, scale, [seed, offset] if dropout_p else None
    )[0]


def _npu_flash_grad(gs, query, key, value, hidden, keep, mode, scale, draw, result0, result1, result2, needs):
    if gs[0] is None:
        return None, None, None
    if not recording():
        return t._npu_flash_attention_grad(
            query, key, value, hidden, keep, mode, scale, draw, gs[0], result0, result1, result2
        )
    if draw is not None:
        raise unsupported(
            "scaled_dot_product_attention", "second derivatives with dropout are not supported on an NPU"
        )
    causal = mode == _CAUSAL_MASK
    mask = None if causal or hidden is None else ~hidden
    return gradients_of(
        lambda q, k, v: _reference(q, k, v, mask, causal, scale), (query, key, value), needs, gs[0]
    )


_NPU_OPERANDS = "Tensor query, Tensor key, Tensor value, Tensor? hidden, float keep, int mode, float scale, Tensor[]? draw"


def _random_pair(draw, like):
    """The seed and the offset of dropout. Without dropout they do not matter."""
    return draw or [_C.host_int64(0), _C.host_int64(0)]


@op(
    f"_npu_flash_attention({_NPU_OPERANDS}) -> (Tensor, Tensor, Tensor)",
    forms="f",
    autocast="lower",
    grad={("query", "key", "value"): _npu_flash_grad},
    whole=True,
)
def _npu_flash_attention(query, key, value, hidden, keep, mode, scale, draw):
    """Return the output, and for each row of scores its maximum and the sum of its exponentials."""
    window = (_UNBOUNDED, _UNBOUNDED, 0, None, None, None, mode, True, False, 1, None, None)
    operands = (query, key, value, query.shape[1], _BNSD, *_random_pair(draw, query), None, None, hidden)
    return tuple(raw.SpeedFusionAttention(*operands, scale, keep, *window)[:3])


@op(
    f"_npu_flash_attention_grad({_NPU_OPERANDS}, Tensor grad, Tensor output, Tensor largest, Tensor total) "
    "-> (Tensor, Tensor, Tensor)",
    forms="f",
)
def _npu_flash_attention_grad(
    query, key, value, hidden, keep, mode, scale, draw, grad, output, largest, total
):
    scores = query.shape[0] * query.shape[1] * query.shape[2] * key.shape[2]
    drawn = (*_random_pair(draw, query), _C.host_int64(scores))
    operands = (
        query,
        key,
        value,
        grad,
        query.shape[1],
        _BNSD,
        None,
        None,
        hidden,
        largest,
        total,
        None,
        output,
    )
    window = (_UNBOUNDED, _UNBOUNDED, 0, *drawn, None, None, None, mode, True, False, 1, None, None)
    return tuple(raw.SpeedFusionAttentionGrad(*operands, scale, keep, *window)[:3])


def _check(query, key, value, attn_mask):
    if min(query.dim(), key.dim(), value.dim()) < 2:
        raise RuntimeError(
            f"Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: {query.dim()} "
            f"key.dim: {key.dim()} and value.dim: {value.dim()} instead."
        )
    if not query.dtype == key.dtype == value.dtype:
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead."
        )
    allowed = (ALL["bool"], ALL["float32"], query.dtype)
    if attn_mask is not None and attn_mask.dtype not in allowed:
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{attn_mask.dtype} and  query.dtype: {query.dtype} instead."
        )


def _takes_two_masks(query, key, value, attn_mask, dropout_p) -> bool:
    """Whether PyTorch computes these inputs with its tiled kernel, which alone takes a mask beside ``is_causal``."""
    if any(x.dim() != 4 or x.stride(-1) != 1 for x in (query, key, value)) or dropout_p > 0:
        return False
    batch, heads, rows, width = query.shape
    whole = (batch, heads, rows, key.shape[-2])
    return (
        key.shape[-1] == value.shape[-1] == width
        and attn_mask.dim() in (2, 4)
        and not attn_mask.requires_grad
        and all(n in (1, m) for n, m in zip(attn_mask.shape, whole[-attn_mask.dim() :], strict=True))
    )


def _check_heads(query, key, value):
    """Raise RuntimeError if the numbers of heads differ. One head is broadcast."""
    for other in (key, value):
        if min(query.dim(), other.dim()) > 2:
            ours, theirs = query.shape[-3], other.shape[-3]
            if ours != theirs and 1 not in (ours, theirs):
                raise RuntimeError(
                    f"The size of tensor a ({ours}) must match the size of tensor b ({theirs}) at non-singleton "
                    f"dimension {query.dim() - 3}"
                )


def _mask_fits(attn_mask, query):
    if attn_mask is None:
        return True
    if attn_mask.requires_grad or attn_mask.dim() > 4:
        return False
    return (
        attn_mask.dtype == query.dtype or attn_mask.dtype.is_bool
        if hasattr(attn_mask.dtype, "is_bool")
        else attn_mask.dtype == query.dtype
    )


@composite(
    "nn.functional.scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, "
    "float dropout_p=0.0, bool is_causal=False, *, float? scale=None, bool enable_gqa=False) -> Tensor",
    forms="f",
    autocast="lower",
    random="other",
)
def scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, *, scale, enable_gqa):
    """Compute softmax(scale * query @ key^T + mask) @ value.

    The shapes are (..., L, E), (..., S, E) and (..., S, Ev); the result is (..., L, Ev). A boolean mask is
    true where a query attends to a key; another mask is added. ``scale`` is 1 / sqrt(E) by default.
    """
    _check(query, key, value, attn_mask)
    if is_causal and attn_mask is not None and not _takes_two_masks(query, key, value, attn_mask, dropout_p):
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
        )
    if not enable_gqa:
        _check_heads(query, key, value)
    if scale is None:
        scale = 1.0 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    if _C.in_device_memory(query) and _npu_takes(query, key, value, attn_mask):
        return _npu_attention(query, key, value, attn_mask, dropout_p, is_causal, scale)
    same_lead = (
        query.dim() == key.dim() == value.dim()
        and query.dim() in (3, 4)
        and query.shape[0] == key.shape[0] == value.shape[0]
    )
    heads = query.dim() < 4 or query.shape[1] == key.shape[1] == value.shape[1] or enable_gqa
    tiled = (
        same_lead
        and heads
        and dropout_p == 0
        and not _C.in_device_memory(query)
        and query.is_floating_point()
        and _mask_fits(attn_mask, query)
        and 0 not in query.shape
        and 0 not in key.shape
        and 0 not in value.shape
    )
    if not tiled:
        return _reference(query, key, value, attn_mask, is_causal, scale, dropout_p)
    if query.dim() == 4:
        return t._flash_attention(query, key, value, attn_mask, is_causal, scale)[0]
    if attn_mask is not None and attn_mask.dim() == 3:
        attn_mask = attn_mask.unsqueeze(1)
    q, k, v = (x.unsqueeze(1) for x in (query, key, value))
    if query.dtype.itemsize == 2:  # without a dimension of heads, PyTorch uses the formula in float32
        q, k, v = (x.float() for x in (q, k, v))
        if attn_mask is not None and attn_mask.is_floating_point():
            attn_mask = attn_mask.float()
    return t._flash_attention(q, k, v, attn_mask, is_causal, scale)[0].squeeze(1).to(query.dtype)
