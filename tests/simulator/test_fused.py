"""Simulated fused operators against numpy: attention, rotary embedding, experts, grouped products."""

import numpy as np
import pytest

from tests.simulator.device import Bf16, Ints, List, Out, Refused
from tests.simulator.test_operators import close, draw, numeric_gradient

FAR = 2**31 - 1
LOWEST = -3.4028234663852886e38


# ---- attention
def causal(queries, keys, offset=0):
    return np.arange(keys)[None] > np.arange(queries)[:, None] + offset


def attend(q, k, v, hidden=None, bias=None, scale=0.5, kept=None, before_scale=False):
    """Attention of (B, N, S, D) arrays: the result, and the largest score and the sum of each query."""
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2)
    if bias is not None and before_scale:
        scores = (scores + bias) * scale
    else:
        scores = scores * scale + (0 if bias is None else bias)
    if hidden is not None:
        scores = np.where(hidden, -np.inf, scores)
    top = scores.max(-1, keepdims=True)
    blind = np.isinf(top)
    p = np.exp(scores - np.where(blind, 0, top))
    total = np.where(blind, 1, p.sum(-1, keepdims=True))
    weights = p / total if kept is None else p / total * kept
    return weights @ v, np.where(blind, LOWEST, top)[..., 0], total[..., 0]


INTO = {
    "BNSD": lambda x: x,
    "BSND": lambda x: x.transpose(0, 2, 1, 3),
    "BSH": lambda x: x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1),
    "SBH": lambda x: x.transpose(2, 0, 1, 3).reshape(x.shape[2], x.shape[0], -1),
}


def run_attention(npu, q, k, v, layout, *, mask=None, mode=0, pre=FAR, following=FAR, bias=None, kind=1, drop=None, keep=1.0,
                  prefix=None, dy=None):  # fmt: skip
    """The operator on (B, N, S, D) arrays; with dy also the gradients, which are returned in the layout of the operands."""
    into = INTO.get(layout, INTO["BNSD"])  # the operator is asked for a layout that does not exist, too
    operands = [np.ascontiguousarray(into(x), np.float32) for x in (q, k, v)]
    b, n, s = q.shape[:3]
    given = None if bias is None else np.ascontiguousarray(bias, np.float32)
    extra = [given, drop, None, mask, None if prefix is None else Ints(prefix), None, None]
    numbers = [0.5, keep, pre, following, n, layout, 0, mode, kind]
    out_shape = into(np.zeros((b, n, s, v.shape[-1]))).shape
    top, total, out = npu.run(
        "FlashAttentionScoreV2",
        *operands,
        *extra,
        *numbers,
        Out((b, n, s, 8)),
        Out((b, n, s, 8)),
        None,
        Out(out_shape),
    )
    if dy is None:
        return top, total, out
    gradients = npu.run(
        "FlashAttentionScoreGradV2", *operands, np.ascontiguousarray(into(dy), np.float32), *extra[:4], top, total, None, out,
        *extra[4:], *numbers, *(Out(x.shape) for x in operands), Out(() if bias is None else bias.shape),
    )  # fmt: skip
    return out, gradients


def heads(n=2, kv=2, queries=5, keys=5, batch=2, width=4):
    return (
        draw("q", (batch, n, queries, width))[1],
        draw("k", (batch, kv, keys, width))[1],
        draw("v", (batch, kv, keys, width))[1],
    )


@pytest.mark.parametrize("layout", INTO)
def test_attention_and_its_gradient_in_every_dense_layout(npu, layout):
    q, k, v = heads(n=4, kv=2, queries=3)
    dy = draw("dy", q.shape)[1]
    out, (dq, dk, dv, _) = run_attention(npu, q, k, v, layout, dy=dy)
    into = INTO[layout]
    close(out, into(attend(q, k, v)[0]))
    close(dq, into(numeric_gradient(lambda t: attend(t, k, v)[0], q, dy)), "float16")
    close(dk, into(numeric_gradient(lambda t: attend(q, t, v)[0], k, dy)), "float16")
    close(dv, into(numeric_gradient(lambda t: attend(q, k, t)[0], v, dy)), "float16")


@pytest.mark.parametrize("queries, keys", [(5, 5), (3, 6), (6, 3)])
@pytest.mark.parametrize("mode", [0, 1, 2, 3, 4, 5, 6])
def test_sparse_modes(npu, mode, queries, keys):
    q, k, v = heads(queries=queries, keys=keys)
    triangle = np.triu(np.ones((2048, 2048), bool), 1)
    own = causal(queries, keys, 1)
    offset, prefix = keys - queries, [max(0, keys - queries), keys]
    i, j = np.arange(queries)[:, None], np.arange(keys)[None]
    mask, hidden, more = {
        0: (own, own | (j < i - 1) | (j > i + 2), {"pre": 1, "following": 2}),
        1: (own, own, {"pre": 0, "following": 0}),
        2: (triangle, causal(queries, keys), {}),
        3: (triangle, causal(queries, keys, offset), {}),
        4: (triangle, (j < i - 1 + offset) | (j > i + 1 + offset), {"pre": 1, "following": 1}),
        5: (None, None, {"prefix": prefix}),
        6: (np.ones((3072, 2048), bool), None, {"prefix": prefix}),
    }[mode]
    if mode in (5, 6):
        hidden = np.stack([causal(queries, keys, offset) & (j >= prefix[b]) for b in range(2)])[:, None]
        mask = hidden.copy() if mode == 5 else mask
    top, total, out = run_attention(npu, q, k, v, "BNSD", mask=mask, mode=mode, **more)
    expected, largest, summed = attend(q, k, v, np.broadcast_to(hidden, (2, 2, queries, keys)))
    close(out, expected)
    close(total, np.repeat(summed[..., None], 8, -1))
    np.testing.assert_allclose(top, np.repeat(largest[..., None], 8, -1).astype(np.float32), 1e-5)


@pytest.mark.parametrize("kind", [0, 1, 2, 3])
def test_position_bias(npu, kind):
    q, k, v = heads()
    dy = draw("dy", q.shape)[1]
    distance = np.abs(np.arange(5)[:, None] - np.arange(5)[None]).astype(float)
    if kind < 2:
        given = draw("bias", (1, 2, 5, 5))[1]
        bias = given
    else:
        given = np.array([0.5, 0.25])
        bias = -given[:, None, None] * (distance if kind == 2 else np.sqrt(distance))
    out, (dq, _, _, dbias) = run_attention(npu, q, k, v, "BNSD", bias=given, kind=kind, dy=dy)

    def computed(q, b):
        return attend(q, k, v, bias=b, before_scale=kind == 1)[0]

    close(out, computed(q, bias))
    close(dq, numeric_gradient(lambda t: computed(t, bias), q, dy), "float16")
    if kind < 2:
        expected = sum(_bias_gradient(q, k, v, bias, dy, b, kind) for b in range(2))
        close(dbias, expected, "float16")


def _bias_gradient(q, k, v, bias, dy, b, kind):
    result = np.zeros_like(bias)
    for place in np.ndindex(bias.shape):
        step = np.zeros_like(bias)
        step[place] = 1e-5
        high, low = (
            attend(q[b : b + 1], k[b : b + 1], v[b : b + 1], bias=bias + sign * step, before_scale=kind == 1)[
                0
            ]
            for sign in (1, -1)
        )
        result[place] = ((high - low) * dy[b]).sum() / 2e-5
    return result


def test_dropout_of_attention(npu):
    q, k, v = heads()
    dy = draw("dy", q.shape)[1]
    bits = np.random.default_rng(1).random((2, 2, 5, 5)) < 0.75
    drop = np.packbits(bits.ravel(), bitorder="little")
    out, (dq, dk, dv, _) = run_attention(npu, q, k, v, "BNSD", drop=drop, keep=0.75, dy=dy)
    kept = bits / 0.75
    close(out, attend(q, k, v, kept=kept)[0])
    close(dk, numeric_gradient(lambda t: attend(q, t, v, kept=kept)[0], k, dy), "float16")
    close(dv, numeric_gradient(lambda t: attend(q, k, t, kept=kept)[0], v, dy), "float16")


@pytest.mark.parametrize("mode", [0, 2, 3, 7, 8])
def test_packed_sequences(npu, mode):
    """TND: three sequences of different lengths, one after the other."""
    lengths = [(3, 3), (2, 4), (4, 4)] if mode != 8 else [(3, 3), (2, 2), (4, 4)]
    ends, key_ends = np.cumsum([a for a, _ in lengths]).tolist(), np.cumsum([b for _, b in lengths]).tolist()
    q, k, v = (draw(n, (t, 2, 4))[1] for n, t in (("q", ends[-1]), ("k", key_ends[-1]), ("v", key_ends[-1])))
    mask = np.triu(np.ones((2048, 2048), bool), 1) if mode else None
    operands = [x.astype(np.float32) for x in (q, k, v)]
    extra = [None, None, None, mask, None, Ints(ends), Ints(key_ends), None, None]
    numbers = [0.5, 1.0, 1, 1, 2, "TND", 0, mode, 1]
    t = ends[-1]
    top, total, out = npu.run(
        "FlashAttentionVarLenScoreV2",
        *operands,
        *extra,
        *numbers,
        Out((t, 2, 8)),
        Out((t, 2, 8)),
        None,
        Out((t, 2, 4)),
    )

    def computed(q, k, v):
        parts = []
        for s, (a, b) in enumerate(lengths):
            i, j = np.arange(a)[:, None], np.arange(b)[None]
            band = (j < i - 1 + b - a) | (j > i + 1 + b - a)
            hidden = {
                0: None,
                2: causal(a, b),
                3: causal(a, b, b - a),
                7: causal(a, b, b - a),
                8: causal(a, b),
            }[mode]
            if (mode, s) in ((7, 2), (8, 0)):
                hidden = band
            rows, columns = slice(ends[s] - a, ends[s]), slice(key_ends[s] - b, key_ends[s])
            one = (x.swapaxes(0, 1)[None] for x in (q[rows], k[columns], v[columns]))
            parts.append(attend(*one, hidden)[0][0].swapaxes(0, 1))
        return np.concatenate(parts)

    close(out, computed(q, k, v))
    dy = draw("dy", out.shape)[1]
    dq, dk, dv, *_ = npu.run(
        "FlashAttentionUnpaddingScoreGradV2", *operands, dy.astype(np.float32), *extra[:4], top, total, None, out, *extra[4:],
        *numbers, *(Out(x.shape) for x in operands), None,
    )  # fmt: skip
    close(dq, numeric_gradient(lambda x: computed(x, k, v), q, dy), "float16")
    close(dk, numeric_gradient(lambda x: computed(q, x, v), k, dy), "float16")
    close(dv, numeric_gradient(lambda x: computed(q, k, x), v, dy), "float16")


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"layout": "NBSD"}, "inputLayout"),
        ({"keep": 0.0}, "keepProb"),
        ({"mode": 2, "mask": np.zeros((5, 5), bool)}, "compressed"),
        ({"mode": 7}, "TND"),
        ({"mode": 5}, "one prefix"),
        ({"mode": 5, "prefix": [0, 9]}, "prefix 9"),
        ({"mask": np.zeros((5, 5), np.float32)}, "'attenMask' is FLOAT"),
    ],
)
def test_attention_refuses(npu, change, reason):
    q, k, v = heads()
    with pytest.raises(Refused, match=reason):
        run_attention(npu, q, k, v, **{"layout": "BNSD"} | change)


def test_two_parts_of_the_keys_are_merged(npu):
    q, k, v = heads(keys=6)
    parts = [run_attention(npu, q, k[:, :, s], v[:, :, s], "SBH") for s in (slice(0, 2), slice(2, 6))]
    (top0, total0, out0), (top1, total1, out1) = parts
    out, _, total = npu.run(
        "RingAttentionUpdate", out0, top0, total0, out1, top1, total1, None, "SBH", Out(out0.shape), Out(top0.shape),
        Out(top0.shape),
    )  # fmt: skip
    expected, _, summed = attend(q, k, v)
    close(out, INTO["SBH"](expected))
    close(total[..., 0], summed)


# ---- rotary embedding
def rotate(x, cos, sin, mode):
    if mode == 3:
        x = np.concatenate([x[..., ::2], x[..., 1::2]], -1)
    if mode == 1:
        turned = np.stack([-x[..., 1::2], x[..., ::2]], -1).reshape(x.shape)
    elif mode == 2:
        a, b, c, d = np.split(x, 4, -1)
        turned = np.concatenate([-b, a, -d, c], -1)
    else:
        a, b = np.split(x, 2, -1)
        turned = np.concatenate([-b, a], -1)
    return x * cos + turned * sin


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
def test_rotary_embedding(npu, mode):
    (a, x), (c, cos), (s, sin), (g, d) = (
        draw(n, shape)
        for n, shape in (("x", (2, 3, 2, 8)), ("c", (1, 3, 1, 8)), ("s", (1, 3, 1, 8)), ("g", (2, 3, 2, 8)))
    )
    close(npu.run("RotaryPositionEmbedding", a, c, s, mode, Out(x.shape)), rotate(x, cos, sin, mode))
    dx, dcos, dsin = npu.run(
        "RotaryPositionEmbeddingGrad", g, c, s, a, mode, Out(x.shape), Out(cos.shape), Out(sin.shape)
    )
    close(dx, numeric_gradient(lambda t: rotate(t, cos, sin, mode), x, d), "float16")
    close(dcos, numeric_gradient(lambda t: rotate(x, t, sin, mode), cos, d), "float16")
    close(dsin, numeric_gradient(lambda t: rotate(x, cos, t, mode), sin, d), "float16")


# ---- experts
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("kept", [12, 7, -2])
def test_moving_tokens_to_experts_and_back(npu, dtype, kept):
    tokens, x = draw("tokens", (6, 4), dtype)
    experts = np.random.default_rng(2).integers(0, 3, (6, 2))
    order = np.argsort(experts.ravel(), kind="stable")
    rows = kept if kept > 0 else 12 + kept
    permuted, places = npu.run(
        "MoeTokenPermute", tokens, experts, kept, False, Out((rows, 4), dtype), Out((12,), "int32")
    )
    close(permuted, x[order // 2][:rows], dtype)
    assert places.tolist() == np.argsort(order).tolist()

    probabilities, p = draw("p", (6, 2), dtype, 0, 1)
    y, values = draw("y", (rows, 4), dtype)

    def back(y, p):
        whole = np.concatenate([y, np.zeros((12 - rows, 4))])
        return (whole[places].reshape(6, 2, 4) * p[..., None]).sum(1)

    close(
        npu.run("MoeTokenUnpermute", y, places, probabilities, False, None, Out((6, 4), dtype)),
        back(values, p),
        dtype,
    )
    g, d = draw("g", (6, 4), dtype)
    dy, dp = npu.run(
        "MoeTokenUnpermuteGrad",
        y,
        g,
        places,
        probabilities,
        False,
        None,
        Out((rows, 4), dtype),
        Out((6, 2), dtype),
    )
    close(dy, numeric_gradient(lambda t: back(t, p), values, d), dtype)
    close(dp, numeric_gradient(lambda t: back(values, t), p, d), dtype)
    gathered, w = draw("w", (rows, 4), dtype)
    expected = np.zeros((12, 4))
    expected[: len(w)] = w
    close(
        npu.run("MoeTokenPermuteGrad", gathered, places, 2, False, Out((6, 4), dtype)),
        expected[places].reshape(6, 2, 4).sum(1),
        dtype,
    )


def test_routing_of_inference(npu):
    a, x = draw("scores", (5, 4))
    y, chosen, numbers = npu.run(
        "MoeGatingTopKSoftmax", a, None, 2, Out((5, 2)), Out((5, 2), "int32"), Out((5, 2), "int32")
    )
    p = np.exp(x) / np.exp(x).sum(1, keepdims=True)
    order = np.argsort(-p, 1, kind="stable")[:, :2]
    close(y, np.take_along_axis(p, order, 1))
    assert chosen.tolist() == order.tolist() and numbers.tolist() == (np.arange(5)[:, None] + [0, 5]).tolist()

    tokens, t = draw("tokens", (5, 3))
    moved, places, sorted_experts = npu.run(
        "MoeInitRouting", tokens, numbers, chosen, 5, Out((10, 3)), Out((10,), "int32"), Out((10,), "int32")
    )
    assert sorted_experts.tolist() == sorted(order.ravel().tolist())
    close(moved[places].reshape(2, 5, 3), np.stack([t, t]))
    ends = npu.run("MoeComputeExpertTokens", sorted_experts, 4, Out((4,), "int32"))
    assert ends.tolist() == np.cumsum(np.bincount(order.ravel(), minlength=4)).tolist()
    bias, b = draw("bias", (4, 3))
    skip, s = draw("skip", (5, 3))
    out = npu.run("MoeFinalizeRouting", moved, skip, None, bias, y, places, chosen, Out((5, 3)))
    close(out, s + (np.take_along_axis(p, order, 1)[..., None] * (t[:, None] + b[order])).sum(1))


# ---- grouped products
@pytest.mark.parametrize("counts", [0, 1])
@pytest.mark.parametrize("stacked", [True, False])
def test_grouped_products_of_rows(npu, stacked, counts):
    (a, x), (w, m) = draw("x", (7, 4)), draw("w", (3, 4, 5))
    numbers = np.array([2, 0, 5] if counts else [2, 2, 7])
    ranges = [(0, 2), (2, 2), (2, 7)]
    weight = List([w]) if stacked else List([np.ascontiguousarray(one) for one in w])
    out = npu.run(
        "GroupedMatmulV4", List([a]), weight, *[None] * 6, numbers, *[None] * 3, 3, 0, counts, 0, List([Out((7, 5))]), None, None
    )  # fmt: skip
    close(out, np.concatenate([x[i:j] @ m[e] for e, (i, j) in enumerate(ranges)]))
    gradient, g = draw("g", (7, 5))
    out = npu.run(
        "GroupedMatmulV4", List([a.T]), List([gradient]), *[None] * 6, numbers, *[None] * 3, 3, 2, counts, 0,
        List([Out((3, 4, 5))]), None, None,
    )  # fmt: skip
    close(out, np.stack([x[i:j].T @ g[i:j] for i, j in ranges]))


def test_grouped_products_refuse(npu):
    a, w = draw("x", (4, 4))[0], draw("w", (2, 4, 4))[0]
    base = [None] * 6

    def call(x, act=0, kind=0, scale=None):
        return npu.run(
            "GroupedMatmulV4", List([x]), List([w]), None, scale, *base[:4], np.array([2, 4]), *[None] * 3, 3, kind, 0, act,
            List([Out((4, 4))]), None, None,
        )  # fmt: skip

    for change, reason in (
        ({"act": 2}, "activation"),
        ({"kind": 1}, "groupType"),
        ({"scale": List([a])}, "quantised"),
    ):
        with pytest.raises(Refused, match=reason):
            call(a, **change)
    with pytest.raises(Refused, match="must be equal"):
        call(Bf16.of(a))
