"""Attention of inference, choice of experts, angles of several positions, tensors in parts: drawn, against float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msadapter as torch
from msadapter import torch_npu
from tests.kernels import reference
from tests.kernels.test_attention_cases import TRIANGLE, joined
from tests.kernels.test_fused_cases import Drawn, check, dtypes, near, numbers, strided, turned

layouts = st.sampled_from(["BSH", "BSND", "BNSD"])
KINDS = ["plain", "turned", "gaps"]


def attention_inputs(data, batch, heads, kv, queries, keys, size, dtype, layout):
    """Arrays (B, N, S, D), and tensors of the layout with drawn strides."""
    r = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    shapes = [(batch, heads, queries, size), (batch, kv, keys, size), (batch, kv, keys, size)]
    arrays = [numbers(torch.tensor(r.standard_normal(s)).to(dtype)) for s in shapes]
    tensors = [
        strided(
            torch.tensor(np.ascontiguousarray(joined([x], layout))).to(dtype),
            data.draw(st.sampled_from(KINDS)),
        )
        for x in arrays
    ]
    return r, arrays, tensors


@settings(max_examples=reference.examples(50), deadline=None)
@given(st.data(), layouts, st.integers(1, 3), st.integers(1, 2), st.integers(1, 3), dtypes)
def test_prompt_attention_drawn(data, layout, batch, kv, group, dtype):
    number = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    queries, keys, heads = number(1, 6), number(1, 6), kv * group
    r, arrays, tensors = attention_inputs(data, batch, heads, kv, queries, keys, number(1, 4), dtype, layout)
    mode = data.draw(st.sampled_from([None, 0, 1, 2, 3, 4]))
    pre, following = number(0, 6), number(0, 6)
    call, hide = (
        {"num_key_value_heads": data.draw(st.sampled_from([0, kv]))},
        np.zeros((batch, 1, queries, keys), bool),
    )
    if mode is not None:
        mask = TRIANGLE
        if mode < 2:
            flags = r.random((queries, keys)) < 0.3
            mask, hide = torch.tensor(flags), hide | flags
        hide = hide | reference.hidden(mode, queries, keys, pre, following, mask)
        call |= {"atten_mask": mask, "sparse_mode": mode, "pre_tokens": pre, "next_tokens": following}
    if mode in (None, 1) and data.draw(st.booleans()):
        lengths = [number(0, keys) for _ in range(batch)]
        alone = queries == keys and data.draw(st.booleans())  # of queries and keys at once
        call["actual_seq_lengths" if alone else "actual_seq_lengths_kv"] = lengths
        hide = hide | (np.arange(keys) >= np.array(lengths)[:, None, None, None])
    bias = 0.0
    if data.draw(st.booleans()):
        bias = numbers(torch.tensor(r.standard_normal((batch, heads, queries, keys))).to(dtype))
        call["pse_shift"] = torch.tensor(bias).to(dtype)
    out = torch_npu.npu_prompt_flash_attention(
        *tensors, num_heads=heads, scale_value=0.4, input_layout=layout, **call
    )
    near(out, joined([reference.attention(*arrays, hide, 0.4, 0.0, bias)[0]], layout), dtype)


@settings(max_examples=reference.examples(40), deadline=None)
@given(st.data(), layouts, st.integers(1, 3), st.integers(1, 2), st.integers(1, 3), dtypes)
def test_incremental_attention_drawn(data, layout, batch, kv, group, dtype):
    number = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    keys, heads = number(1, 7), kv * group
    r, arrays, tensors = attention_inputs(data, batch, heads, kv, 1, keys, number(1, 4), dtype, layout)
    call, hide, bias = {}, np.zeros((batch, 1, 1, keys), bool), 0.0
    if data.draw(st.booleans()):
        flags = r.random((batch, keys)) < 0.3
        call["atten_mask"] = torch.tensor(flags if data.draw(st.booleans()) else flags[:, None, None])
        hide = hide | flags[:, None, None]
    if data.draw(st.booleans()):
        lengths = [number(0, keys) for _ in range(1 if data.draw(st.booleans()) else batch)]
        call["actual_seq_lengths"] = lengths
        hide = hide | (np.arange(keys) >= np.array(lengths)[:, None, None, None])
    if data.draw(st.booleans()):
        bias = numbers(torch.tensor(r.standard_normal((batch, heads, 1, keys))).to(dtype))
        call["pse_shift"] = torch.tensor(bias).to(dtype)
    out = torch_npu.npu_incre_flash_attention(
        *tensors, num_heads=heads, scale_value=0.4, input_layout=layout, **call
    )
    near(out, joined([reference.attention(*arrays, hide, 0.4, 0.0, bias)[0]], layout), dtype)


def test_attention_of_inference_refuses():
    x = torch.randn(1, 3, 8)
    for run in (torch_npu.npu_prompt_flash_attention, torch_npu.npu_incre_flash_attention):
        with pytest.raises(RuntimeError, match="num_key_value_heads is 3, but key has 2"):
            run(x, x, x, num_heads=2, num_key_value_heads=3)
        with pytest.raises(NotImplementedError, match="input_layout SH"):
            run(x[0], x[0], x[0], num_heads=2, input_layout="SH")
        with pytest.raises(NotImplementedError, match="derivative for npu_"):
            run(x.clone().requires_grad_(), x, x, num_heads=2).sum().backward()
    with pytest.raises(RuntimeError, match="pass actual_seq_lengths_kv"):
        torch_npu.npu_prompt_flash_attention(x[:, :2], x, x, num_heads=2, actual_seq_lengths=[1])


# ---- experts


@settings(max_examples=reference.examples(60), deadline=None)
@given(
    st.data(),
    st.integers(1, 4),
    st.sampled_from([4, 3, 2, 1]),
    st.sampled_from([4, 3, 2]),
    dtypes,
    st.integers(0, 1),
    st.integers(0, 1),
)
def test_choice_of_experts_drawn(data, tokens, groups, each, dtype, norm_type, mode):
    """Compares with sorting and the formula of the weights. Scores are multiples of 1/8, so rounding makes no two of them equal."""
    r, experts = np.random.default_rng(data.draw(st.integers(0, 10**6))), groups * each
    kept = data.draw(st.integers(1, groups))
    k = data.draw(st.integers(1, kept * each))
    renorm, scale = data.draw(st.integers(0, 1)), data.draw(st.sampled_from([1.0, 2.5]))
    rows = np.stack([r.permutation(experts) for _ in range(tokens)]) / 8.0
    x = strided(torch.tensor(rows).to(dtype), data.draw(st.sampled_from(KINDS))).requires_grad_()
    shift = (
        np.round(r.standard_normal(experts)) * 4 if data.draw(st.booleans()) else None
    )  # larger than any score

    def formula(x):
        e = np.exp(x - x.real.max(-1, keepdims=True))
        scores = e / e.sum(-1, keepdims=True) if norm_type == 0 else 1 / (1 + np.exp(-x))
        taken = np.take_along_axis(scores, chosen, -1)
        if norm_type or renorm:
            taken = taken / taken.sum(-1, keepdims=True)
        return (taken * scale,)

    e = np.exp(rows - rows.max(-1, keepdims=True))
    scores = e / e.sum(-1, keepdims=True) if norm_type == 0 else 1 / (1 + np.exp(-rows))
    choice = scores if shift is None else scores + shift
    chosen = []
    for row in choice:
        parts = row.reshape(groups, each)
        worth = [sorted(p)[-1] if mode == 0 else sum(sorted(p)[-2:]) for p in parts]
        stay = sorted(range(groups), key=lambda g, worth=worth: -worth[g])[:kept]
        allowed = [i for i in range(experts) if i // each in stay]
        chosen.append(sorted(allowed, key=lambda i, row=row: -row[i])[:k])
    chosen = np.array(chosen)
    call = {
        "k_group": kept,
        "group_count": groups,
        "group_select_mode": mode,
        "renorm": renorm,
        "norm_type": norm_type,
    }
    bias = None if shift is None else torch.tensor(shift).to(dtype)
    weights, experts_found, all_scores = torch_npu.npu_moe_gating_top_k(
        x, k, bias=bias, routed_scaling_factor=scale, out_flag=True, eps=0.0, **call
    )
    near(all_scores, scores, torch.float32)
    # groups of equal worth, experts of equal score (a bias may bring that about): the choice is as good
    np.testing.assert_allclose(
        np.take_along_axis(choice, experts_found.numpy().astype(int), -1),
        np.take_along_axis(choice, chosen, -1),
        atol=1e-6,
    )
    chosen = experts_found.numpy().astype(int)
    assert experts_found.dtype == torch.int32
    check(
        formula,
        lambda x: torch_npu.npu_moe_gating_top_k(
            x, k, bias=bias, routed_scaling_factor=scale, eps=0.0, **call
        )[0],
        (x,),
    )


@settings(max_examples=reference.examples(30), deadline=None)
@given(st.data(), st.integers(1, 5), st.integers(1, 4), st.booleans(), dtypes)
def test_unpermute_by_a_map_drawn(data, tokens, experts, with_probs, dtype):
    """The public function, with its gradients."""
    make = Drawn(data)
    topk = data.draw(st.integers(1, experts))
    chosen = np.zeros((tokens, experts), bool)
    for row in chosen:
        row[make.random.choice(experts, topk, replace=False)] = True
    pairs = [(e, t) for e in range(experts) for t in range(tokens) if chosen[t, e]]
    x = make((tokens, 3), dtype, False)
    marks = torch.tensor(chosen)
    places = torch_npu.npu_moe_token_permute_with_routing_map(x, marks)[2]
    y, probs = make((len(pairs), 3), dtype), make((tokens, experts), dtype)

    def formula(y, probs=None):
        out = np.zeros((tokens, 3), y.dtype)
        for row, (e, t) in enumerate(pairs):
            out[t] += y[row] * (1 if probs is None else probs[t, e])
        return (out,)

    def operator(y, probs=None):
        return torch_npu.npu_moe_token_unpermute_with_routing_map(
            y, places, [tokens, 3], probs=probs, routing_map=marks if with_probs else None
        )

    check(formula, operator, (y, probs) if with_probs else (y,))


# ---- angles, parts


@settings(max_examples=reference.examples(40), deadline=None)
@given(
    st.data(),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 2),
    dtypes,
    st.sampled_from(["half", "interleave"]),
)
def test_angles_of_positions_drawn(data, tokens, half, heads, dtype, mode):
    """One row of positions, or three, with or without sections. Heads may be longer than their rotated part."""
    make = Drawn(data)
    head = 2 * half + data.draw(st.integers(0, 2))
    form = data.draw(st.sampled_from(["one", "three", "sections"]))
    positions = make.random.integers(0, 5, (tokens,) if form == "one" else (3, tokens))
    sections = None
    if form == "sections":
        first = data.draw(st.integers(0, half))
        second = data.draw(st.integers(0, half - first))
        sections = [first, second, half - first - second]
    cache = make((5, 2 * half), dtype, False)
    query, key = make((tokens, heads * head), dtype), make((tokens, head), dtype)
    table = numbers(cache)
    owner = [0] * half if sections is None else [row for row, n in enumerate(sections) for _ in range(n)]
    rows = positions[None] if form == "one" else positions
    cos = np.array([[table[rows[owner[i], t], i] for i in range(half)] for t in range(tokens)])
    sin = np.array([[table[rows[owner[i], t], half + i] for i in range(half)] for t in range(tokens)])
    spread = (lambda x: np.concatenate([x, x], -1)) if mode == "half" else (lambda x: np.repeat(x, 2, -1))

    def one(x, count):
        x = x.reshape(tokens, count, head)
        front, back = x[..., : 2 * half], x[..., 2 * half :]
        c, s = spread(cos)[:, None], spread(sin)[:, None]
        return np.concatenate([front * c + turned(front, mode == "interleave") * s, back], -1).reshape(
            tokens, -1
        )

    def operator(query, key):
        kind = data.draw(st.sampled_from([torch.int32, torch.int64]))
        return torch_npu.npu_mrope(
            torch.tensor(positions).to(kind),
            query,
            key,
            cache,
            head,
            mrope_section=sections,
            rotary_mode=mode,
        )

    check(lambda q, k: (one(q, heads), one(k, 1)), operator, (query, key))


@settings(max_examples=reference.examples(40), deadline=None)
@given(
    st.data(),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.sampled_from([torch.float32, torch.float16, torch.bfloat16]),
)
def test_parts_give_the_same_bits_drawn(data, shape, dtype):
    """Any bits, any size of the fixed part, and tensors and results that are not contiguous."""
    r = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    words = torch.int32 if dtype.itemsize == 4 else torch.int16
    info = np.iinfo(np.int32 if dtype.itemsize == 4 else np.int16)
    bits = torch.tensor(r.integers(info.min, info.max, shape, endpoint=True)).to(words)
    x = strided(bits.view(dtype), data.draw(st.sampled_from(KINDS)))
    count, size = x.numel(), dtype.itemsize
    parts = [
        torch.zeros(n, dtype=torch.uint8)
        for n in (count * (size - 1), data.draw(st.integers(0, count)), count)
    ]
    pdf = torch.zeros(256, dtype=torch.int32)
    torch_npu.npu_hans_encode(x, True, False, out=(pdf, *parts))
    unsigned = bits.numpy().ravel().astype(np.int64) & (2 ** (8 * size) - 1)
    exponents = (unsigned << 1 >> (8 * size - 8)) & 255
    assert pdf.tolist() == np.bincount(exponents, minlength=256).tolist()
    back = strided(torch.empty(shape, dtype=dtype), data.draw(st.sampled_from(KINDS)))
    torch_npu.npu_hans_decode(*parts, pdf, False, out=back)
    assert torch.equal(back.contiguous().view(words), bits)
