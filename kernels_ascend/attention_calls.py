"""The public functions npu_fusion_attention and its variants, with the arguments that programs pass."""

from __future__ import annotations

import msadapter
from msadapter.ops import t

from . import attention_bias
from ._mapping import without_derivative
from .attention import UNBOUNDED, Options
from .attention_layout import sizes_of


def _ints(values) -> tuple[int, ...] | None:
    if values is None:
        return None
    values = values.tolist() if hasattr(values, "tolist") else values
    return tuple(int(n) for n in values)


def _first(values) -> int:
    numbers = _ints(values)
    return numbers[0] if numbers else 0


def options_of(head_num, input_layout, scale, keep_prob, pre, following, inner_precise, prefix, qlen, kvlen,
        sparse_mode, gen_mask_parallel, sync, pse_type=1, q_start_idx=None, kv_start_idx=None, seed=0,
        offset=0) -> Options:  # fmt: skip
    """Makes the Options of a call from the arguments that a program passes."""
    return Options(
        int(head_num),
        input_layout,
        float(scale),
        float(keep_prob),
        int(pre),
        int(following),
        int(inner_precise),
        _ints(prefix),
        _ints(qlen),
        _ints(kvlen),
        int(sparse_mode),
        bool(gen_mask_parallel),
        bool(sync),
        int(pse_type),
        _first(q_start_idx),
        _first(kv_start_idx),
        int(seed),
        int(offset),
    )


def _no_padding_mask(padding_mask) -> None:
    if padding_mask is not None:
        raise NotImplementedError("npu_fusion_attention: padding_mask is not supported (docs/coverage.md)")


def _with_rope(query, key, query_rope, key_rope, layout: str):
    if query_rope is None and key_rope is None:
        return query, key
    if query_rope is None or key_rope is None or layout in ("BSH", "SBH"):
        raise RuntimeError(
            "npu_fusion_attention_v2: query_rope and key_rope must be given together, and input_layout must have a head dimension"
        )
    return t.cat([query, query_rope], -1), t.cat([key, key_rope], -1)


def npu_fusion_attention_v2(query, key, value, head_num, input_layout, pse=None, padding_mask=None,
        atten_mask=None, scale=1.0, keep_prob=1.0, pre_tokens=UNBOUNDED, next_tokens=UNBOUNDED,
        inner_precise=0, prefix=None, actual_seq_qlen=None, actual_seq_kvlen=None, sparse_mode=0,
        gen_mask_parallel=True, sync=False, pse_type=1, q_start_idx=None, kv_start_idx=None, *,
        query_rope=None, key_rope=None):  # fmt: skip
    """npu_fusion_attention that can make ALiBi from slopes (pse_type 2, 3) and takes rotary parts as separate tensors."""
    _no_padding_mask(padding_mask)
    query, key = _with_rope(query, key, query_rope, key_rope, input_layout)
    seed = 0
    if keep_prob < 1:
        seed = int(msadapter.randint(0, 1 << 62, (1,), device=query.device))
    o = options_of(
        head_num,
        input_layout,
        scale,
        keep_prob,
        pre_tokens,
        next_tokens,
        inner_precise,
        prefix,
        actual_seq_qlen,
        actual_seq_kvlen,
        sparse_mode,
        gen_mask_parallel,
        sync,
        pse_type,
        q_start_idx,
        kv_start_idx,
        seed,
    )
    out, top, total = t.torch_npu__fusion_attention(query, key, value, pse, atten_mask, o)
    numels = sizes_of(query, key, value, o.heads, o.layout, o.qlen, o.kvlen).scores
    return out, top.detach(), total.detach(), query.new_empty(0).detach(), seed, 0, numels


def npu_fusion_attention(query, key, value, head_num, input_layout, pse=None, padding_mask=None,
        atten_mask=None, scale=1.0, keep_prob=1.0, pre_tockens=UNBOUNDED, next_tockens=UNBOUNDED,
        inner_precise=0, prefix=None, actual_seq_qlen=None, actual_seq_kvlen=None, sparse_mode=0,
        gen_mask_parallel=True, sync=False):  # fmt: skip
    """Computes attention with one fused operator.

    Args:
        query, key, value: float tensors in `input_layout`: BSH, SBH, BSND, BNSD, or TND with the ends of the packed
            sequences in actual_seq_qlen and actual_seq_kvlen. The heads of query are a multiple of those of key.
        head_num: the number of heads of query.
        pse: added to query @ key^T before `scale`: (B or 1, N, Sq or 1, Skv), or the last 1024 rows of ALiBi.
        atten_mask: bool or uint8, true hides a key: (B, N, Sq, Skv), (B, 1, Sq, Skv), (1, 1, Sq, Skv), (Sq, Skv), or the
            compressed (2048, 2048) for a sparse_mode that defines a pattern.
        sparse_mode: 0 mask and band; 1 mask; 2 causal, aligned to the upper left; 3 causal, aligned to the lower right;
            4 band of pre_tockens and next_tockens, aligned to the lower right; 5, 6 causal with a visible prefix;
            7, 8 packed sequences of which the last (7) or first (8) has a band.

    Returns:
        (out, softmax_max, softmax_sum, an empty tensor, seed, offset, numels). The statistics are float32 (B, N, S, 8),
        or packed (T, N, 8), where each sequence is stored as (N, S, 8). The integers identify the dropout's random numbers.
    """
    return npu_fusion_attention_v2(
        query,
        key,
        value,
        head_num,
        input_layout,
        pse,
        padding_mask,
        atten_mask,
        scale,
        keep_prob,
        pre_tockens,
        next_tockens,
        inner_precise,
        prefix,
        actual_seq_qlen,
        actual_seq_kvlen,
        sparse_mode,
        gen_mask_parallel,
        sync,
    )


def npu_fusion_attention_grad_v2(query, key, value, dy, head_num, input_layout, *, pse=None,
        padding_mask=None, atten_mask=None, softmax_max=None, softmax_sum=None, softmax_in=None,
        attention_in=None, scale_value=1.0, keep_prob=1.0, pre_tokens=UNBOUNDED, next_tokens=UNBOUNDED,
        inner_precise=0, seed=0, offset=0, numels=0, prefix=None, actual_seq_qlen=None,
        actual_seq_kvlen=None, sparse_mode=0, gen_mask_parallel=True, sync=False, pse_type=1,
        q_start_idx=None, kv_start_idx=None, query_rope=None, key_rope=None):  # fmt: skip
    """The gradients of npu_fusion_attention_v2: (query, key, value, pse or empty, query_rope, key_rope or empty)."""
    _no_padding_mask(padding_mask)
    if softmax_max is None or softmax_sum is None or attention_in is None:
        raise RuntimeError(
            "npu_fusion_attention_grad: pass softmax_max, softmax_sum and attention_in, which the forward returned"
        )
    size = query.shape[-1]
    query, key = _with_rope(query, key, query_rope, key_rope, input_layout)
    o = options_of(
        head_num,
        input_layout,
        scale_value,
        keep_prob,
        pre_tokens,
        next_tokens,
        inner_precise,
        prefix,
        actual_seq_qlen,
        actual_seq_kvlen,
        sparse_mode,
        gen_mask_parallel,
        sync,
        pse_type,
        q_start_idx,
        kv_start_idx,
        seed,
        offset,
    )
    wants_pse = (
        pse is not None
        and pse_type < attention_bias.ALIBI
        and (
            pse.shape[2]
            in (1, query.shape[2 if input_layout == "BNSD" else 1 if input_layout != "SBH" else 0])
            and input_layout != "TND"
        )
    )
    dq, dk, dv, dpse = t.torch_npu__fusion_attention_grad(
        query, key, value, pse, atten_mask, dy, softmax_max, softmax_sum, attention_in, o, wants_pse
    )
    empty = dq.new_empty(0)
    if query_rope is None:
        return dq, dk, dv, dpse, empty, empty
    return dq[..., :size], dk[..., :size], dv, dpse, dq[..., size:], dk[..., size:]


def npu_fusion_attention_grad(query, key, value, dy, head_num, input_layout, *, pse=None, padding_mask=None,
        atten_mask=None, softmax_max=None, softmax_sum=None, softmax_in=None, attention_in=None,
        scale_value=1.0, keep_prob=1.0, pre_tockens=UNBOUNDED, next_tockens=UNBOUNDED, inner_precise=0,
        seed=0, offset=0, numels=0, prefix=None, actual_seq_qlen=None, actual_seq_kvlen=None, sparse_mode=0,
        gen_mask_parallel=True, sync=False):  # fmt: skip
    """The gradients of npu_fusion_attention from its outputs: (query, key, value, pse or empty).

    The softmax statistics may belong to more keys than `key` contains, as in ring attention.
    """
    return npu_fusion_attention_grad_v2(
        query,
        key,
        value,
        dy,
        head_num,
        input_layout,
        pse=pse,
        padding_mask=padding_mask,
        atten_mask=atten_mask,
        softmax_max=softmax_max,
        softmax_sum=softmax_sum,
        attention_in=attention_in,
        scale_value=scale_value,
        keep_prob=keep_prob,
        pre_tokens=pre_tockens,
        next_tokens=next_tockens,
        inner_precise=inner_precise,
        seed=seed,
        offset=offset,
        prefix=prefix,
        actual_seq_qlen=actual_seq_qlen,
        actual_seq_kvlen=actual_seq_kvlen,
        sparse_mode=sparse_mode,
        gen_mask_parallel=gen_mask_parallel,
        sync=sync,
    )[:4]


def _no_quantization(name: str, options) -> None:
    given = [key for key, value in options.items() if value is not None and key != "inner_precise"]
    if given:
        raise NotImplementedError(
            f"torch_npu.{name}: {', '.join(given)} are not supported (docs/coverage.md)"
        )


def _check_key_heads(name: str, query, key, heads: int, key_heads: int, layout: str) -> None:
    """Raises RuntimeError if the given number of key heads does not match the shapes."""
    if layout not in ("BSH", "BSND", "BNSD"):
        raise NotImplementedError(
            f"torch_npu.{name}: input_layout {layout} is not supported, only BSH, BSND and BNSD (docs/coverage.md)"
        )
    have = (
        key.shape[-1] * heads // query.shape[-1]
        if layout == "BSH"
        else key.shape[1 if layout == "BNSD" else 2]
    )
    if key_heads not in (0, have):
        raise RuntimeError(f"torch_npu.{name}: num_key_value_heads is {key_heads}, but key has {have} heads")


def _lengths_as_mask(lengths, keys: int, batch: int, mask, device):
    """The mask extended so that it also hides the keys after each sequence's length."""
    if lengths is None:
        return mask
    numbers = _ints(lengths) or ()
    numbers = numbers * batch if len(numbers) == 1 else numbers
    ends = msadapter.tensor(numbers, device=device).reshape(batch, 1, 1, 1)
    behind = msadapter.arange(keys, device=device).reshape(1, 1, 1, keys) >= ends
    return behind if mask is None else behind | (mask != 0)


@without_derivative
def npu_prompt_flash_attention(query, key, value, *, padding_mask=None, atten_mask=None, pse_shift=None,
        actual_seq_lengths=None, num_heads=1, scale_value=1.0, pre_tokens=UNBOUNDED, next_tokens=0,
        input_layout='BSH', num_key_value_heads=0, actual_seq_lengths_kv=None, sparse_mode=0,
        **quantization):  # fmt: skip
    """Attention over a prompt, without gradient. pse_shift is added to the scaled scores.

    Args:
        actual_seq_lengths, actual_seq_lengths_kv: lengths of the sequences; keys after them are hidden.
        The other arguments are those of npu_fusion_attention. The number of key heads follows from the shapes.
    """
    _no_padding_mask(padding_mask)
    _no_quantization("npu_prompt_flash_attention", quantization)
    _check_key_heads("npu_prompt_flash_attention", query, key, num_heads, num_key_value_heads, input_layout)
    if atten_mask is None:
        sparse_mode, next_tokens = 0, UNBOUNDED
    batch, keys = key.shape[0], key.shape[2 if input_layout == "BNSD" else 1]
    if actual_seq_lengths_kv is not None or actual_seq_lengths is not None:
        if sparse_mode > 1:
            raise NotImplementedError(
                "torch_npu.npu_prompt_flash_attention: lengths with a compressed mask are not supported (docs/coverage.md)"
            )
        lengths = actual_seq_lengths_kv if actual_seq_lengths_kv is not None else actual_seq_lengths
        queries = query.shape[2 if input_layout == "BNSD" else 1]
        if actual_seq_lengths_kv is None and queries != keys:
            raise RuntimeError(
                f"torch_npu.npu_prompt_flash_attention: actual_seq_lengths alone needs as many keys as queries, but got "
                f"{queries} queries and {keys} keys; pass actual_seq_lengths_kv too"
            )
        atten_mask = _lengths_as_mask(lengths, keys, batch, atten_mask, query.device).expand(
            batch, 1, queries, keys
        )
    with msadapter.no_grad():
        return npu_fusion_attention_v2(
            query,
            key,
            value,
            num_heads,
            input_layout,
            pse_shift,
            None,
            atten_mask,
            scale_value,
            1.0,
            pre_tokens,
            next_tokens,
            sparse_mode=sparse_mode,
            pse_type=attention_bias.AFTER_SCALE,
        )[0]


@without_derivative
def npu_incre_flash_attention(query, key, value, *, padding_mask=None, pse_shift=None, atten_mask=None,
        actual_seq_lengths=None, num_heads=1, scale_value=1.0, input_layout='BSH', num_key_value_heads=0,
        block_size=0, **quantization):  # fmt: skip
    """Attention of one new query per sequence over cached keys, without gradient.

    Args:
        atten_mask: (B, Skv) or (B, 1, 1, Skv), true hides a key. actual_seq_lengths: the number of valid keys per sequence.
    """
    _no_padding_mask(padding_mask)
    _no_quantization("npu_incre_flash_attention", quantization)
    _check_key_heads("npu_incre_flash_attention", query, key, num_heads, num_key_value_heads, input_layout)
    batch, keys = key.shape[0], key.shape[2 if input_layout == "BNSD" else 1]
    mask = None if atten_mask is None else atten_mask.reshape(batch, 1, 1, keys)
    mask = _lengths_as_mask(actual_seq_lengths, keys, batch, mask, query.device)
    with msadapter.no_grad():
        return npu_fusion_attention_v2(
            query,
            key,
            value,
            num_heads,
            input_layout,
            pse_shift,
            None,
            mask,
            scale_value,
            sparse_mode=0 if mask is None else 1,
            pse_type=attention_bias.AFTER_SCALE,
        )[0]
