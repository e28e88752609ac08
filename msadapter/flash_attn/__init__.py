"""FlashAttention's functions with paged keys and values, computed by the plain formulas. Nothing is flash about them here.

With MSADAPTER_FLASH_ATTN=1, `import flash_attn` returns this package (docs/distributed.md). Megatron's engine for dynamic batches
asks for it. A causal mask and a window count from the last key, as FlashAttention's do. A query that sees no key gets zeros.
"""

from .. import cat, stack, zeros
from .._errors import unsupported
from ..nn.attention._formula import attend, paged

__version__ = "2.7.4"  # whose arguments these are
__all__ = ["flash_attn_func", "flash_attn_varlen_func", "flash_attn_with_kvcache"]


def flash_attn_func(
    q, k, v, dropout_p=0.0, softmax_scale=None, causal=False, window_size=(-1, -1), softcap=0.0,
    alibi_slopes=None, deterministic=False, return_attn_probs=False,
):  # fmt: skip
    """Attention of q (batch, queries, heads, width) over k and v (batch, keys, groups, width), of the shape of q.

    With return_attn_probs, a tuple of it, the logarithm of the sum of the exponentials (batch, heads, queries), and None.
    """
    _check(dropout_p=dropout_p, softcap=softcap, alibi_slopes=alibi_slopes)
    pairs = [attend(*one, softmax_scale, causal, window_size) for one in zip(q, k, v, strict=True)]
    out, logs = stack([pair[0] for pair in pairs]), stack([pair[1] for pair in pairs])
    return (out, logs, None) if return_attn_probs else out


def flash_attn_varlen_func(
    q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, dropout_p=0.0, softmax_scale=None,
    causal=False, window_size=(-1, -1), softcap=0.0, alibi_slopes=None, deterministic=False,
    return_attn_probs=False, block_table=None,
):  # fmt: skip
    """Attention within each of several sequences: q is (all queries, heads, width), and the sequences end at cu_seqlens_q.

    block_table (sequences, pages): k and v are pages (pages, size of a page, groups, width), and its rows say which belong to a
    sequence. Queries after the last sequence get zeros. With return_attn_probs, a tuple as that of flash_attn_func, with the
    logarithms as (heads, all queries).
    """
    _check(dropout_p=dropout_p, softcap=softcap, alibi_slopes=alibi_slopes)
    ends_q, ends_k = cu_seqlens_q.tolist(), cu_seqlens_k.tolist()
    outs, logs = [], []
    for i in range(len(ends_q) - 1):
        count = ends_k[i + 1] - ends_k[i]
        if block_table is None:
            keys, values = (x[ends_k[i] : ends_k[i + 1]] for x in (k, v))
        else:
            keys, values = (paged(x, block_table[i], count) for x in (k, v))
        out, log = attend(q[ends_q[i] : ends_q[i + 1]], keys, values, softmax_scale, causal, window_size)
        outs.append(out)
        logs.append(log)
    rest = q.shape[0] - ends_q[-1]
    outs.append(q.new_zeros((rest, *q.shape[1:-1], v.shape[-1])))
    logs.append(zeros((q.shape[1], rest), device=q.device))
    return (cat(outs), cat(logs, 1), None) if return_attn_probs else cat(outs)


def flash_attn_with_kvcache(
    q, k_cache, v_cache, k=None, v=None, rotary_cos=None, rotary_sin=None, cache_seqlens=None,
    cache_batch_idx=None, cache_leftpad=None, block_table=None, softmax_scale=None, causal=False,
    window_size=(-1, -1), softcap=0.0, rotary_interleaved=True, alibi_slopes=None, num_splits=0,
    return_softmax_lse=False,
):  # fmt: skip
    """Attention of q (batch, queries, heads, width) over a cache, of which sequence i has cache_seqlens[i] keys.

    The cache is (batch, keys, groups, width), or pages with a block_table as in flash_attn_varlen_func. It is not written to. With
    return_softmax_lse, a tuple of the result and the logarithm of the sum of the exponentials (batch, heads, queries).
    """
    _check(k=k, v=v, rotary_cos=rotary_cos, rotary_sin=rotary_sin, cache_batch_idx=cache_batch_idx,
           cache_leftpad=cache_leftpad, softcap=softcap, alibi_slopes=alibi_slopes)  # fmt: skip
    if cache_seqlens is None or isinstance(cache_seqlens, int):
        counts = [k_cache.shape[1] if cache_seqlens is None else cache_seqlens] * q.shape[0]
    else:
        counts = cache_seqlens.tolist()
    pairs = []
    for i, count in enumerate(counts):
        if block_table is None:
            keys, values = k_cache[i, :count], v_cache[i, :count]
        else:
            keys, values = (paged(x, block_table[i], count) for x in (k_cache, v_cache))
        pairs.append(attend(q[i], keys, values, softmax_scale, causal, window_size))
    out = stack([pair[0] for pair in pairs])
    return (out, stack([pair[1] for pair in pairs])) if return_softmax_lse else out


def _check(**arguments) -> None:
    """Refuse what is not the value that changes nothing."""
    for name, value in arguments.items():
        if value is not None and not (isinstance(value, (int, float)) and value == 0):
            raise unsupported("flash_attn", f"{name} is not supported")
