"""npu_fusion_attention and its gradient, with all layouts, sparse modes, biases, dropout, grouped heads, packed sequences.

    out = dropout(softmax(mask(scale * query @ key^T + bias))) @ value

For a query that sees no key the output is 0, softmax_max is the lowest float32, and softmax_sum is 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import msadapter
from msadapter.ops import gradients_of, on_ascend, op, recording, t

from . import attention_bias, attention_masks, attention_tiles
from ._mapping import LAYOUTS, ascend, no_derivative
from .attention_layout import Sizes, heads_first, sizes_of

UNBOUNDED = 2147483647


@dataclass(frozen=True)
class Options:
    """The arguments of a call that are not tensors."""

    heads: int
    layout: str
    scale: float = 1.0
    keep: float = 1.0
    pre: int = UNBOUNDED
    following: int = UNBOUNDED
    inner_precise: int = 0
    prefix: tuple[int, ...] | None = None
    qlen: tuple[int, ...] | None = None
    kvlen: tuple[int, ...] | None = None
    mode: int = 0
    gen_mask_parallel: bool = True
    sync: bool = False
    pse_type: int = attention_bias.BEFORE_SCALE
    q_start: int = 0
    kv_start: int = 0
    seed: int = 0
    offset: int = 0

    def operands(self) -> dict:
        """These arguments as operands of MindSpore's operator, in its order."""
        return {
            "keep_prob": self.keep,
            "pre_tokens": self.pre,
            "next_tokens": self.following,
            "inner_precise": self.inner_precise,
        }

    def last_operands(self) -> dict:
        return {
            "prefix": self.prefix,
            "actual_seq_qlen": self.qlen,
            "actual_seq_kvlen": self.kvlen,
            "sparse_mode": self.mode,
            "gen_mask_parallel": self.gen_mask_parallel,
            "sync": self.sync,
            "pse_type": self.pse_type,
            "q_start_idx": (self.q_start,) if self.pse_type >= attention_bias.ALIBI else None,
            "kv_start_idx": (self.kv_start,) if self.pse_type >= attention_bias.ALIBI else None,
        }


def _checked(query, key, value, pse, atten_mask, o: Options) -> tuple[Sizes, object]:
    """The sizes of the call and its mask in four dimensions. Raises RuntimeError if shapes or options do not match."""
    sizes = sizes_of(query, key, value, o.heads, o.layout, o.qlen, o.kvlen)
    if not 0 < o.keep <= 1:
        raise RuntimeError(f"npu_fusion_attention: keep_prob must be in (0, 1], but got {o.keep}")
    packed = sizes.lengths is not None
    attention_masks.check_mode(o.mode, atten_mask is not None, packed, o.prefix, sizes.batch)
    attention_bias.check(pse, o.pse_type, sizes, query.dtype)
    if attention_bias.is_compressed(pse, sizes):
        attention_bias.check_causal(pse, atten_mask, o.mode, o.following, sizes)
    if pse is not None and o.mode in (attention_masks.VARLEN_LAST_BAND, attention_masks.VARLEN_FIRST_BAND):
        raise RuntimeError(f"npu_fusion_attention: sparse_mode {o.mode} cannot be combined with pse")
    queries, keys = sizes.queries, sizes.keys
    if sizes.lengths is not None:
        queries, keys = (max(n) for n in zip(*sizes.lengths, strict=True))
    mask = attention_masks.check_mask(atten_mask, o.mode, sizes.batch, o.heads, queries, keys, packed)
    return sizes, mask


def _problems(query, key, value, pse, mask, has_mask: bool, sizes: Sizes, o: Options):
    """Yields the dense problems of a call as (ranges of queries and keys or None, problem), one per packed sequence."""
    q = heads_first(query, o.layout, o.heads)
    k, v = (heads_first(x, o.layout, sizes.kv_heads) for x in (key, value))

    def bias(queries, sequence=None):
        if pse is None:
            return None
        return attention_bias.Bias(pse, o.pse_type, o.scale, queries, o.q_start, o.kv_start, sequence)

    common = {"scale": o.scale, "keep": o.keep}
    seed = o.seed * 0x9E3779B97F4A7C15 + o.offset * 0xD1B54A32D192ED03
    if sizes.lengths is None:
        prefixes = o.prefix or (0,)
        band = [
            attention_masks.visible(o.mode, sizes.queries, sizes.keys, o.pre, o.following, has_mask, p)
            for p in (
                prefixes if o.mode in (attention_masks.PREFIX, attention_masks.PREFIX_COMPRESSED) else (0,)
            )
        ]
        if o.mode == attention_masks.PREFIX:
            band = [attention_masks.EVERYTHING]  # the mask alone decides
        yield None, attention_tiles.Dense(q, k, v, band, mask, bias(sizes.queries), seed=seed, **common)
        return
    bands = attention_masks.of_packed(o.mode, list(sizes.lengths), o.pre, o.following, has_mask, o.prefix)
    a = b = 0
    for n, (queries, keys) in enumerate(sizes.lengths):
        where = slice(a, a + queries), slice(b, b + keys)
        own = None if mask is None else mask[:, :, :queries, :keys]
        yield (
            where,
            attention_tiles.Dense(
                q[:, :, where[0]],
                k[:, :, where[1]],
                v[:, :, where[1]],
                [bands[n]],
                own,
                bias(queries, n),
                seed=seed + (n << 40),
                **common,
            ),
        )
        a, b = a + queries, b + keys


def _output_like(query, value, sizes: Sizes, o: Options):
    """An uninitialised output with the query's shape and the head size of value."""
    if o.layout in ("BSH", "SBH"):
        size = value.shape[-1] // sizes.kv_heads
        return query.new_empty(*query.shape[:2], o.heads * size)
    return query.new_empty(*query.shape[: 3 if o.layout != "TND" else 2], value.shape[-1])


def _statistics_like(query, sizes: Sizes):
    """Zeros for softmax_max and softmax_sum, without the dimension of eight equal columns."""
    dtype = attention_tiles.working(query.dtype)
    shape = (sizes.queries, sizes.heads) if sizes.lengths else (sizes.batch, sizes.heads, sizes.queries)
    return [query.new_zeros(*shape, dtype=dtype) for _ in range(2)]


def _statistics_of(x, where, sizes: Sizes):
    """The statistics (B, N, S) of a dense problem. In a packed tensor (T, N), each sequence is stored as its own (N, S)."""
    if where is None:
        return x
    first, last = (n * sizes.heads for n in (where[0].start, where[0].stop))
    return x.reshape(-1)[first:last].view(1, sizes.heads, where[0].stop - where[0].start)


_ATTENTION_TENSORS = "Tensor query, Tensor key, Tensor value, Tensor? pse, Tensor? atten_mask"


def _formula(query, key, value, pse, atten_mask, o: Options):
    """Attention by the plain formula with all scores at once. It is used for second derivatives."""
    if o.keep < 1:
        raise NotImplementedError(
            "npu_fusion_attention: second derivatives with dropout are not supported (docs/coverage.md)"
        )
    sizes, mask = _checked(query, key, value, pse, atten_mask, o)
    outputs = []
    for _, p in _problems(query, key, value, pse, mask, atten_mask is not None, sizes, o):
        k, v = (x.repeat_interleave(p.group, 1) if p.group > 1 else x for x in (p.key, p.value))
        s = t.matmul(p.query, k.transpose(-2, -1)) * p.scale
        if p.bias is not None:
            s = s + p.bias.formula(*s.shape[-2:])
        hidden = [v.hidden((0, s.shape[-2]), (0, s.shape[-1]), s.device) for v in p.visible]
        for b, one in enumerate(hidden):
            if one is not None:
                chosen = (
                    msadapter.arange(len(s), device=s.device).reshape(-1, 1, 1, 1) == b
                    if len(hidden) > 1
                    else True
                )
                s = s.masked_fill(one & chosen if len(hidden) > 1 else one, float("-inf"))
        s = s if p.mask is None else s.masked_fill(p.mask, float("-inf"))
        outputs.append(t.matmul(t._safe_softmax(s, -1), v))
    if sizes.lengths and (tail := sizes.queries - sum(q for q, _ in sizes.lengths)):
        outputs.append(outputs[0].new_zeros(1, o.heads, tail, outputs[0].shape[-1]))
    out = outputs[0] if len(outputs) == 1 else t.cat(outputs, 2)
    b, n, s, d = out.shape
    order = {"BNSD": None, "BSND": (b, s, n, d), "BSH": (b, s, n * d), "TND": (s, n, d)}
    if o.layout == "SBH":
        return out.permute(2, 0, 1, 3).reshape(s, b, n * d)
    return out if o.layout == "BNSD" else out.transpose(1, 2).reshape(order[o.layout])


def _gradient(gs, query, key, value, pse, atten_mask, options, result0, result1, result2, needs):
    if gs[0] is None:
        return None, None, None, None
    if recording():
        return gradients_of(
            lambda q, k, v, p: _formula(q, k, v, p, atten_mask, options),
            (query, key, value, pse),
            needs,
            gs[0],
        )
    found = t.torch_npu__fusion_attention_grad(
        query, key, value, pse, atten_mask, gs[0], result1, result2, result0, options, bool(needs[3])
    )
    return found[0], found[1], found[2], found[3] if needs[3] else None


@op(
    f"torch_npu._fusion_attention({_ATTENTION_TENSORS}, any options) -> (Tensor, Tensor, Tensor)",
    forms="f",
    grad={("query", "key", "value", "pse"): _gradient},
)
def _fusion_attention(query, key, value, pse, atten_mask, options):
    o = options
    sizes, mask = _checked(query, key, value, pse, atten_mask, o)
    if on_ascend(query):
        seed, offset = (query.new_tensor([n], dtype=msadapter.int64) for n in (o.seed, o.offset))
        found = ascend(
            "SpeedFusionAttention",
            query=query,
            key=key,
            value=value,
            head_num=o.heads,
            input_layout=LAYOUTS[o.layout],
            seed=seed,
            offset=offset,
            pse=pse,
            padding_mask=None,
            atten_mask=atten_mask,
            scale=o.scale,
            **o.operands(),
            **o.last_operands(),
        )
        return tuple(found[:3])
    out = _output_like(query, value, sizes, o)
    view = heads_first(out, o.layout, o.heads)
    made = _statistics_like(query, sizes)
    for where, p in _problems(query, key, value, pse, mask, atten_mask is not None, sizes, o):
        rows = slice(None) if where is None else where[0]
        attention_tiles.forward(p, view[:, :, rows], *(_statistics_of(x, where, sizes) for x in made))
    if sizes.lengths and sum(q for q, _ in sizes.lengths) < sizes.queries:
        view[:, :, sum(q for q, _ in sizes.lengths) :] = 0
    return out, *(x.unsqueeze(-1).repeat(*(1,) * x.dim(), 8) for x in made)


@op(
    f"torch_npu._fusion_attention_grad({_ATTENTION_TENSORS}, Tensor dy, Tensor softmax_max, Tensor softmax_sum, "
    "Tensor attention_in, any options, bool pse_grad=False) -> (Tensor, Tensor, Tensor, Tensor)",
    forms="f",
    grad={
        ("query", "key", "value", "pse", "dy", "softmax_max", "softmax_sum", "attention_in"): no_derivative(
            "npu_fusion_attention_grad"
        )
    },
)
def _fusion_attention_grad(
    query, key, value, pse, atten_mask, dy, softmax_max, softmax_sum, attention_in, options, pse_grad
):
    o = options
    sizes, mask = _checked(query, key, value, pse, atten_mask, o)
    if on_ascend(query):
        seed, offset, numels = (
            query.new_tensor([n], dtype=msadapter.int64) for n in (o.seed, o.offset, sizes.scores)
        )
        return ascend(
            "SpeedFusionAttentionGrad",
            query=query,
            key=key,
            value=value,
            dy=dy,
            head_num=o.heads,
            input_layout=LAYOUTS[o.layout],
            pse=pse,
            padding_mask=None,
            atten_mask=atten_mask,
            softmax_max=softmax_max,
            softmax_sum=softmax_sum,
            softmax_in=None,
            attention_in=attention_in,
            scale_value=o.scale,
            **o.operands(),
            seed=seed,
            offset=offset,
            numels=numels,
            **o.last_operands(),
        )
    _check_saved(query, dy, softmax_max, softmax_sum, attention_in, sizes, value, o)
    if pse_grad and (
        sizes.lengths or o.pse_type >= attention_bias.ALIBI or pse.shape[2] not in (1, sizes.queries)
    ):
        raise NotImplementedError(
            "npu_fusion_attention: the gradient of a compressed pse is not supported (docs/coverage.md)"
        )
    into = [x.new_zeros(x.shape) for x in (query, key, value)]
    heads = (o.heads, sizes.kv_heads, sizes.kv_heads)
    into_views = [heads_first(x, o.layout, n) for x, n in zip(into, heads, strict=True)]
    out, grad = (heads_first(x, o.layout, o.heads) for x in (attention_in, dy))
    top, total = (x[..., 0] for x in (softmax_max, softmax_sum))
    bias = None
    for where, p in _problems(query, key, value, pse, mask, atten_mask is not None, sizes, o):
        q, k = (slice(None),) * 2 if where is None else where
        parts = [x[:, :, r] for x, r in zip(into_views, (q, k, k), strict=True)]
        bias = p.bias
        attention_tiles.backward(
            p,
            out[:, :, q],
            _statistics_of(top, where, sizes),
            _statistics_of(total, where, sizes),
            grad[:, :, q],
            parts,
            bias.gradient if pse_grad else None,
        )
    if not pse_grad:
        return *into, query.new_empty(0)
    return *into, t.zeros_like(pse) if bias is None or bias.sum is None else bias.sum.to(pse.dtype)


def _check_saved(query, dy, softmax_max, softmax_sum, attention_in, sizes: Sizes, value, o: Options) -> None:
    wanted = (
        (sizes.queries, sizes.heads, 8) if sizes.lengths else (sizes.batch, sizes.heads, sizes.queries, 8)
    )
    for name, x in (("softmax_max", softmax_max), ("softmax_sum", softmax_sum)):
        if tuple(x.shape) != wanted:
            raise RuntimeError(
                f"npu_fusion_attention_grad: {name} must have the shape {list(wanted)}, but got {list(x.shape)}"
            )
    if dy.shape != attention_in.shape or dy.shape[:2] != query.shape[:2]:
        raise RuntimeError(
            f"npu_fusion_attention_grad: dy of shape {list(dy.shape)} and attention_in of shape "
            f"{list(attention_in.shape)} must have the shape of the forward's output"
        )
