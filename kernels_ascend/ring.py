"""Merges attentions over different parts of the keys, for ring attention."""

from __future__ import annotations

import functools

import msadapter
from msadapter.ops import gradients_of, on_ascend, op, recording, t

from ._mapping import LAYOUTS, ascend


def _ends(actual_seq_qlen) -> list[int]:
    return [
        int(n) for n in (actual_seq_qlen.tolist() if hasattr(actual_seq_qlen, "tolist") else actual_seq_qlen)
    ]


def _spread(scale, out, layout: str, ends):
    """Expands a factor to the elements of `out`. In a packed tensor, each sequence's statistics are stored as (N, S)."""
    if layout == "SBH":
        batch, heads, length = scale.shape
        size = out.shape[-1] // heads
        return scale.permute(2, 0, 1).unsqueeze(-1).expand(length, batch, heads, size).reshape(out.shape)
    heads, flat = scale.shape[1], scale.reshape(-1)
    parts = [
        flat[a * heads : b * heads].view(heads, b - a).t() for a, b in zip([0, *ends[:-1]], ends, strict=True)
    ]
    if ends[-1] < len(out):  # there are tokens that belong to no sequence
        parts.append(scale.new_zeros(len(out) - ends[-1], heads))
    return t.cat(parts).unsqueeze(-1)


def _merged(before_out, before_max, before_sum, now_out, now_max, now_sum, actual_seq_qlen, layout):
    """The formula of the merge, made of table operators."""
    top = t.maximum(before_max, now_max)
    before, now = before_sum * t.exp(before_max - top), now_sum * t.exp(now_max - top)
    total = before + now
    ends = _ends(actual_seq_qlen) if layout == "TND" else None
    out = sum(
        x * _spread((part / total)[..., 0], x, layout, ends)
        for x, part in ((before_out, before), (now_out, now))
    )
    return out.to(before_out.dtype), top, total


_PARTS = (
    "prev_attn_out",
    "prev_softmax_max",
    "prev_softmax_sum",
    "cur_attn_out",
    "cur_softmax_max",
    "cur_softmax_sum",
)


def _gradient(gs, prev_attn_out, prev_softmax_max, prev_softmax_sum, cur_attn_out, cur_softmax_max,
        cur_softmax_sum, actual_seq_qlen, layout, needs):  # fmt: skip
    before, current = (
        (prev_attn_out, prev_softmax_max, prev_softmax_sum),
        (cur_attn_out, cur_softmax_max, cur_softmax_sum),
    )
    parts = (*before, *current)
    merged = functools.partial(_merged, actual_seq_qlen=actual_seq_qlen, layout=layout)
    with msadapter.enable_grad():
        found = gradients_of(merged, parts, needs, tuple(gs))
    return found if recording() else tuple(None if x is None else x.detach() for x in found)


@op(
    "torch_npu.npu_ring_attention_update(Tensor prev_attn_out, Tensor prev_softmax_max, Tensor prev_softmax_sum, "
    "Tensor cur_attn_out, Tensor cur_softmax_max, Tensor cur_softmax_sum, Tensor? actual_seq_qlen=None, "
    "str layout='SBH') -> (Tensor, Tensor, Tensor)",
    forms="f",
    grad={_PARTS: _gradient},
)
def npu_ring_attention_update(prev_attn_out, prev_softmax_max, prev_softmax_sum, cur_attn_out,
        cur_softmax_max, cur_softmax_sum, actual_seq_qlen, layout):  # fmt: skip
    """Merges two attentions of the same queries over different keys. Returns (out, softmax_max, softmax_sum).

    Args:
        prev_attn_out, cur_attn_out: (S, B, H), or (T, N, D) with layout TND and the ends of the sequences.
        The statistics are those of npu_fusion_attention, float32 with eight equal columns.

    Raises:
        RuntimeError: the layout is unknown, or actual_seq_qlen is missing for TND.
    """
    if layout not in ("SBH", "TND"):
        raise RuntimeError(f"npu_ring_attention_update: layout must be SBH or TND, but got {layout}")
    if layout == "TND" and actual_seq_qlen is None:
        raise RuntimeError("npu_ring_attention_update: layout TND needs actual_seq_qlen")
    if on_ascend(prev_attn_out):
        return ascend(
            "RingAttentionUpdate",
            prev_attn_out=prev_attn_out,
            prev_softmax_max=prev_softmax_max,
            prev_softmax_sum=prev_softmax_sum,
            cur_attn_out=cur_attn_out,
            cur_softmax_max=cur_softmax_max,
            cur_softmax_sum=cur_softmax_sum,
            actual_seq_qlen=actual_seq_qlen,
            layout=LAYOUTS[layout],
        )
    return _merged(
        prev_attn_out,
        prev_softmax_max,
        prev_softmax_sum,
        cur_attn_out,
        cur_softmax_max,
        cur_softmax_sum,
        actual_seq_qlen,
        layout,
    )
