"""Attention in the layouts that Megatron uses, with or without context parallelism."""

import contextlib

from ... import arange, cat, nn, stack
from ... import bool as bool_dtype
from ..._errors import unsupported
from ...distributed import get_rank, get_world_size
from . import context_parallel

_NAME = "transformer_engine.pytorch.DotProductAttention"


class _SplitAlongDim:
    """split() under the name of TransformerEngine's function."""

    @staticmethod
    def apply(tensor, dim, sizes, squeeze=False):
        """Splits `tensor` along `dim` into views of the given sizes."""
        return tensor.split(sizes, dim)


def _rotated(x):
    first, second = x.chunk(2, -1)
    return cat((-second, first), -1)


def _rotated_pairs(x):
    return stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)


def apply_rotary_pos_emb(
    t, freqs, tensor_format="sbhd", interleaved=False, fused=False, cu_seqlens=None, cp_size=1, cp_rank=0
):
    """Applies the rotary embedding with angles `freqs` (s, 1, 1, d) to the first d channels of t (sbhd or bshd)."""
    if tensor_format not in ("sbhd", "bshd"):
        raise unsupported(
            "transformer_engine.pytorch.apply_rotary_pos_emb", f"{tensor_format} is not supported"
        )
    width, sequence = freqs.shape[-1], 0 if tensor_format == "sbhd" else 1
    freqs = freqs[: t.shape[sequence]]
    freqs = freqs if sequence == 0 else freqs.transpose(0, 1)
    turned, rest = t[..., :width], t[..., width:]
    other = (_rotated_pairs if interleaved else _rotated)(turned)
    return cat((turned * freqs.cos().to(t.dtype) + other * freqs.sin().to(t.dtype), rest), -1)


class DotProductAttention(nn.Module):
    """Computes softmax(q k' * scale + bias, masked) v.

    qkv_format: sbhd (sequence, batch, head, channel), bshd, or thd (packed sequences with their ends in cu_seqlens). Masks
    are True where attention is not allowed. With a context parallel group of n ranks, the sequence is divided into 2 n
    pieces, and rank r has the pieces r and 2 n - 1 - r. The communication type "a2a" exchanges heads for pieces; the other
    types gather keys and values.
    """

    def __init__(
        self,
        num_attention_heads,
        kv_channels,
        num_gqa_groups=None,
        attention_dropout=0.0,
        qkv_format="sbhd",
        attn_mask_type="causal",
        window_size=None,
        sequence_parallel=False,
        tp_size=1,
        get_rng_state_tracker=None,
        tp_group=None,
        layer_number=None,
        attention_type="self",
        cp_group=None,
        cp_global_ranks=None,
        cp_stream=None,
        cp_comm_type="p2p",
        softmax_scale=None,
    ):
        super().__init__()
        if window_size is not None and len(window_size) != 2:
            raise ValueError(f"window_size is (left, right), not {window_size!r}")
        key_width = kv_channels if isinstance(kv_channels, int) else kv_channels[0]
        self.softmax_scale = key_width**-0.5 if softmax_scale is None else softmax_scale
        self.attention_dropout, self.attn_mask_type = attention_dropout, attn_mask_type
        self.window_size = window_size or ((-1, 0) if "causal" in attn_mask_type else (-1, -1))
        self.qkv_format, self.get_rng_state_tracker = qkv_format, get_rng_state_tracker
        self.set_context_parallel_group(cp_group, cp_global_ranks, cp_stream, cp_comm_type)

    def set_context_parallel_group(
        self, cp_group, cp_global_ranks=None, cp_stream=None, cp_comm_type="p2p"
    ) -> None:
        """Sets the group over which sequences are split, and the type of its communication."""
        if isinstance(cp_group, list):
            raise unsupported(
                _NAME,
                "context parallelism in two levels (a2a+p2p) is not supported",
            )
        self.cp_group, self.cp_comm_type = cp_group, cp_comm_type
        self.cp_size = 1 if cp_group is None else get_world_size(cp_group)

    def forward(
        self,
        query,
        key,
        value,
        attention_mask=None,
        qkv_format=None,
        cu_seqlens_q=None,
        cu_seqlens_kv=None,
        cu_seqlens_q_padded=None,
        cu_seqlens_kv_padded=None,
        max_seqlen_q=None,
        max_seqlen_kv=None,
        attn_mask_type=None,
        window_size=None,
        core_attention_bias_type="no_bias",
        core_attention_bias=None,
        pad_between_seqs=None,
        num_splits=None,
        fast_zero_fill=True,
        **others,
    ):
        """Maps query, key, value (s, b, h, d) to (s, b, h * d). Other layouts are kept in the same way.

        cu_seqlens_q and cu_seqlens_kv say how long the packed sequences of thd are, and cu_seqlens_q_padded and
        cu_seqlens_kv_padded, if given, where each begins and where the padding behind it ends. A "post_scale_bias" is added
        to the scaled products of queries and keys, and a "pre_scale_bias" to the products before they are scaled.

        These choose a kernel or a buffer of the GPU, and have no effect: max_seqlen_q, max_seqlen_kv, pad_between_seqs (the
        places of the padding tell it), num_splits and fast_zero_fill.

        Raises NotImplementedError for other options of TransformerEngine that are set, and for other kinds of biases.
        """
        for name, given in others.items():
            if given is not None and given is not False:
                raise unsupported(_NAME, f"{name}={given!r} is not supported")
        layout, mask_type = qkv_format or self.qkv_format, attn_mask_type or self.attn_mask_type
        causal = "causal" in mask_type
        window = _limits(window_size or self.window_size)
        if layout == "thd":
            if self.cp_size > 1:
                raise unsupported(
                    _NAME,
                    "thd under context parallelism is not supported",
                )
            if core_attention_bias is not None or core_attention_bias_type != "no_bias":
                raise unsupported(_NAME, "a bias with thd is not supported")
            lengths_kv, padded_kv = cu_seqlens_kv, cu_seqlens_kv_padded
            if cu_seqlens_kv is None:
                lengths_kv, padded_kv = cu_seqlens_q, cu_seqlens_q_padded
            places = zip(
                _sequences(cu_seqlens_q, cu_seqlens_q_padded), _sequences(lengths_kv, padded_kv), strict=True
            )
            return self._packed(query, key, value, causal, window, list(places))
        if layout not in ("sbhd", "bshd"):
            raise ValueError(f"qkv_format {layout!r} is not supported")
        order = (1, 2, 0, 3) if layout == "sbhd" else (0, 2, 1, 3)
        heads = [x.permute(order) for x in (query, key, value)]  # b h s d
        bias = self._scaled_bias(core_attention_bias_type, core_attention_bias)
        mask = None
        if "padding" in mask_type or mask_type == "arbitrary":
            mask = attention_mask
            if mask is None:
                mask = _padding(mask_type, heads, cu_seqlens_q, cu_seqlens_kv)
        if self.cp_size > 1:
            if mask is not None or bias is not None or window is not None:
                raise unsupported(
                    _NAME,
                    "masks, biases and windows under context parallelism are not supported",
                )
            out = self._over_ranks(*heads, causal)
        else:
            shift = heads[1].shape[2] - heads[0].shape[2] if "bottom_right" in mask_type else 0
            places = [arange(x.shape[2], device=x.device) for x in heads[:2]]
            out = self._attend(*heads, _forbidden(places[0] + shift, places[1], causal, window, mask), bias)
        return out.permute(*((2, 0, 1, 3) if layout == "sbhd" else (0, 2, 1, 3))).flatten(-2)

    def _scaled_bias(self, kind, bias):
        """What is added to the scaled products of queries and keys; None if nothing is."""
        if kind == "no_bias":
            if bias is not None:
                raise ValueError("core_attention_bias is given, but core_attention_bias_type is 'no_bias'")
            return None
        if kind not in ("pre_scale_bias", "post_scale_bias"):
            raise unsupported(_NAME, f"core_attention_bias_type={kind!r} is not supported")
        if bias is None:
            raise ValueError(f"core_attention_bias_type is {kind!r}, but core_attention_bias is None")
        return bias * self.softmax_scale if kind == "pre_scale_bias" else bias

    def _over_ranks(self, query, key, value, causal):
        rank = get_rank(self.cp_group)
        if self.cp_comm_type == "a2a":
            query, key, value = (
                context_parallel.heads_for_pieces(x, self.cp_group) for x in (query, key, value)
            )
            places = arange(query.shape[2], device=query.device)
            out = self._attend(query, key, value, _forbidden(places, places, causal, None, None), None)
            return context_parallel.pieces_for_heads(out, self.cp_group)
        key, value = (context_parallel.whole_sequence(x, self.cp_group) for x in (key, value))
        mine = context_parallel.places(key.shape[2], rank, self.cp_size, query.device)
        everybody = arange(key.shape[2], device=query.device)
        return self._attend(query, key, value, _forbidden(mine, everybody, causal, None, None), None)

    def _packed(self, query, key, value, causal, window, places):
        """Attention within each sequence of a packed batch: (t, h, d) to (t, h * d), with zeros for padding.

        places: for each sequence where its queries, and where its keys are, as pairs (begin, end).
        """
        parts, done = [], 0
        for (begin, end), (begin_kv, end_kv) in places:
            parts.append(query.new_zeros(begin - done, query.shape[1] * value.shape[-1]))
            done = end
            if begin == end:
                continue  # Megatron fills the list of sequences up with empty ones
            q = query[begin:end].transpose(0, 1).unsqueeze(0)
            k, v = (x[begin_kv:end_kv].transpose(0, 1).unsqueeze(0) for x in (key, value))
            numbers = [arange(x.shape[2], device=x.device) for x in (q, k)]
            out = self._attend(q, k, v, _forbidden(*numbers, causal, window, None), None)
            parts.append(out.squeeze(0).transpose(0, 1).flatten(-2))
        parts.append(query.new_zeros(query.shape[0] - done, query.shape[1] * value.shape[-1]))
        return cat(parts)

    def _attend(self, query, key, value, forbidden, bias):
        """Attention of queries (b, h, s, d) over keys (b, g, t, d). `forbidden` broadcasts to (b, h, s, t)."""
        if key.shape[1] != query.shape[1]:
            key, value = (x.repeat_interleave(query.shape[1] // x.shape[1], 1) for x in (key, value))
        scores = (query @ key.transpose(-1, -2)).float() * self.softmax_scale
        if bias is not None:
            scores = scores + bias
        if forbidden is not None:
            scores = scores.masked_fill(forbidden, -10000.0)
        weights = scores.softmax(-1).to(query.dtype)
        if self.training and self.attention_dropout:
            tracker = self.get_rng_state_tracker
            with tracker().fork() if tracker is not None else contextlib.nullcontext():
                weights = nn.functional.dropout(weights, self.attention_dropout)
        return weights @ value


def _padding(mask_type, heads, ends_q, ends_kv):
    """The mask (b, 1, s, t) that hides the padding behind each sequence of a batch, from the ends of the sequences."""
    if mask_type == "arbitrary" or ends_q is None or ends_kv is None:
        raise ValueError(f"attn_mask_type {mask_type!r} needs attention_mask, which is None")
    beyond = [
        arange(x.shape[2], device=x.device) >= ends.diff().unsqueeze(1)
        for x, ends in zip(heads[:2], (ends_q, ends_kv), strict=True)
    ]
    return beyond[0][:, None, :, None] | beyond[1][:, None, None, :]


def _sequences(ends, padded):
    """Where each packed sequence begins and ends; `padded` (or None) has the ends together with the padding behind each."""
    ends = ends.tolist()
    begins = ends if padded is None else padded.tolist()
    return [
        (begin, begin + after - before) for begin, before, after in zip(begins, ends, ends[1:], strict=False)
    ]


def _limits(window):
    """The window (left, right); None if it hides no more than a mask type does."""
    return None if tuple(window) in ((-1, -1), (-1, 0)) else window


def _forbidden(query_places, key_places, causal, window, mask):
    """A mask (s, t), combined with `mask`, that is True where a query must not see a key; None if nothing is hidden."""
    distance = query_places.unsqueeze(1) - key_places.unsqueeze(0)
    out = distance < 0 if causal else None
    left, right = window or (-1, -1)
    for reaches, too_far in ((left, distance > left), (right, -distance > right)):
        if reaches >= 0:
            out = too_far if out is None else out | too_far
    if mask is not None:
        for one in mask if isinstance(mask, tuple) else (mask,):
            one = one.to(bool_dtype)
            out = one if out is None else out | one
    return out
