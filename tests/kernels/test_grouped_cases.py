"""Grouped products, experts and optimizer steps, drawn: empty groups, rows of no group, dtypes, strides.

References are loops in numpy; gradients are complex steps of them (reference.vjp), in float64.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import msadapter as torch
from kernels_ascend import mindspeed
from msadapter import torch_npu
from tests.kernels import reference
from tests.kernels.test_fused_cases import Drawn, dtypes, near, numbers

counts_of_groups = st.lists(st.integers(0, 4), min_size=1, max_size=4)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


ACTIVATIONS = {
    0: lambda x: x,
    1: lambda x: np.where(x.real > 0, x, 0 * x),
    2: gelu,
    4: lambda x: x / (1 + np.exp(-1.702 * x)),
    5: lambda x: x / (1 + np.exp(-x)),
}


def given_list(counts, kind, as_list):
    values = counts if kind else np.cumsum(counts).tolist()
    return values if as_list else torch.tensor(values)


def check(formula, outputs, tensors, factor):
    """Compares outputs and gradients like test_fused_cases.check, for outputs that have been computed."""
    arrays = [numbers(x) for x in tensors]
    wants = formula(*arrays)
    assert len(wants) == len(outputs)
    for mine, want in zip(outputs, wants, strict=True):
        assert tuple(mine.shape) == want.shape
        near(mine, want, tensors[0].dtype, factor)
    r = np.random.default_rng(7)
    back = [torch.tensor(r.standard_normal(x.shape)).to(x.dtype) for x in outputs]
    found = torch.autograd.grad(outputs, tensors, back, allow_unused=True, materialize_grads=True)
    for x, mine, want in zip(
        tensors, found, reference.vjp(formula, arrays, [numbers(g) for g in back]), strict=True
    ):
        near(mine, want, x.dtype, factor)


@settings(max_examples=reference.examples(60), deadline=None)
@given(st.data(), counts_of_groups, st.integers(0, 2), dtypes, st.sampled_from(list(ACTIVATIONS)))
def test_grouped_rows_drawn(data, counts, rest, dtype, act):
    """group_type 0 in all forms: one x or a list, one weight or a list, one result or several."""
    make, bit = Drawn(data), lambda: data.draw(st.booleans())
    groups, total = len(counts), sum(counts)
    many = bit() and groups > 1
    rest = 0 if many else rest
    xs = [make((n, 3), dtype) for n in counts] if many else [make((total + rest, 3), dtype)]
    ws = [make((groups, 3, 2), dtype)] if bit() else [make((3, 2), dtype) for _ in counts]
    bias_kind = data.draw(st.sampled_from(["none", "one", "list"]))
    bias = {"none": [], "one": [make((groups, 2), dtype)], "list": [make((2,), dtype) for _ in counts]}[
        bias_kind
    ]
    split, kind = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 1))
    found = torch_npu.npu_grouped_matmul(
        xs,
        ws,
        bias=bias or None,
        group_list=None if many else given_list(counts, kind, bit()),
        split_item=split,
        group_type=0,
        group_list_type=kind,
        act_type=act,
    )

    def formula(*arrays):
        x, w, b = arrays[: len(xs)], arrays[len(xs) : len(xs) + len(ws)], arrays[len(xs) + len(ws) :]
        ends = np.cumsum([0, *counts])
        parts = x if many else [x[0][i:j] for i, j in zip(ends, ends[1:], strict=False)]
        w = w[0] if w[0].ndim == 3 else w
        b = [0] * groups if not b else b[0] if bias_kind == "one" else b
        products = [ACTIVATIONS[act](part @ w[e] + b[e]) for e, part in enumerate(parts)]
        if split < 2:
            return products
        return [np.concatenate([*products, np.zeros((rest, 2))])]

    # A bias and an activation round once more than the product, in the gradient as well, whose products are summed over the
    # rows of a group. relu is not differentiated near its corner.
    check(formula, list(found), [*xs, *ws, *bias], 32)


@settings(max_examples=reference.examples(30), deadline=None)
@given(st.data(), counts_of_groups, st.integers(0, 2), dtypes, st.integers(0, 1))
def test_grouped_inner_drawn(data, counts, rest, dtype, kind):
    """group_type 2, which computes the gradient of weights. Empty groups give zeros."""
    make = Drawn(data)
    x, w = make((3, sum(counts) + rest), dtype), make((sum(counts) + rest, 2), dtype)
    groups = given_list(counts, kind, data.draw(st.booleans()))
    found = torch_npu.npu_grouped_matmul(
        [x], [w], group_list=groups, split_item=3, group_type=2, group_list_type=kind
    )

    def formula(x, w):
        ends = np.cumsum([0, *counts])
        return [np.stack([x[:, i:j] @ w[i:j] for i, j in zip(ends, ends[1:], strict=False)])]

    check(formula, list(found), [x, w], 16)


@settings(max_examples=reference.examples(30), deadline=None)
@given(st.data(), counts_of_groups, dtypes, st.integers(0, 1), st.booleans())
def test_gmm_backward_drawn(data, counts, dtype, kind, turned):
    """The three functions of MindSpeed's grouped_matmul. Weights may be transposed views."""
    make = Drawn(data)
    rows, groups = sum(counts), len(counts)
    x, g = make((rows, 3), dtype, False), make((rows, 2), dtype, False)
    w = make((groups, 2, 3), dtype, False).transpose(1, 2) if turned else make((groups, 3, 2), dtype, False)
    listed = given_list(counts, kind, False)
    ops = mindspeed.load("grouped_matmul")
    ends = np.cumsum([0, *counts])

    def formula(x, w):
        return (
            np.concatenate([x[i:j] @ w[e] for e, (i, j) in enumerate(zip(ends, ends[1:], strict=False))]),
        )

    arrays = [numbers(x), numbers(w)]
    near(ops.npu_gmm([x], [w], [], listed, 0, kind)[0], formula(*arrays)[0], dtype, 16)
    dx, dw = reference.vjp(formula, arrays, [numbers(g)])
    mine = ops.npu_gmm_backward([g], [x], [w], listed, kind)
    near(mine[0][0], dx, dtype, 16)
    near(mine[1][0], dw, dtype, 16)
    assert mine[2] == []
    near(ops.npu_gmm_backward_fusion([g], [w], listed, kind)[0][0], dx, dtype, 16)


@settings(max_examples=reference.examples(30), deadline=None)
@given(st.data(), counts_of_groups, st.integers(0, 1), dtypes)
def test_products_added_to_gradients_drawn(data, counts, rest, dtype):
    """Gradients are float32 (float64 for float64 operands). They may be non-contiguous or one-dimensional."""
    make, into = Drawn(data), torch.float64 if dtype == torch.float64 else torch.float32
    rows = sum(counts) + rest
    x, dy = make((rows, 3), dtype), make((rows, 2), dtype)
    main = make((2, 3), into, False).clone(memory_format=torch.preserve_format)
    before = numbers(main)
    assert torch_npu.npu_matmul_add_fp32(x, dy, main) is None
    near(main, before + numbers(dy).T @ numbers(x), into, 16)
    shape = data.draw(st.sampled_from([(len(counts), 3, 2), (len(counts) * 3, 2), (len(counts) * 6,)]))
    main = torch.tensor(make.random.standard_normal(shape)).to(into)
    before = numbers(main).reshape(len(counts), 3, 2)
    torch_npu.npu_groupmatmul_add_fp32(x, dy, torch.tensor(np.cumsum(counts)), main)
    ends = np.cumsum([0, *counts])
    parts = [numbers(x)[i:j].T @ numbers(dy)[i:j] for i, j in zip(ends, ends[1:], strict=False)]
    near(main, (before + np.stack(parts)).reshape(shape), into, 16)
    kind = data.draw(st.integers(0, 1))
    listed = torch.tensor(counts if kind else np.cumsum(counts))
    assert torch_npu.npu_grouped_matmul_add_(main, x, dy, listed, group_list_type=kind) is main
    near(main, (before + 2 * np.stack(parts)).reshape(shape), into, 32)
    assert x.grad is None and main.grad_fn is None


# ---- int8 operands


@settings(max_examples=reference.examples(30), deadline=None)
@given(st.data(), counts_of_groups, st.integers(0, 1), st.sampled_from([torch.float16, torch.bfloat16]))
def test_int8_products_drawn(data, counts, kind, dtype):
    """Integer sums are exact. Scales, activation and one rounding follow."""
    r = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    rows, groups, act = sum(counts), len(counts), data.draw(st.sampled_from([0, 1, 4, 5]))
    ends = np.cumsum([0, *counts])
    x, w = r.integers(-128, 128, (rows, 5)), r.integers(-128, 128, (groups, 5, 3))
    scale = (r.random((groups, 3)) * 1e-4).astype(np.float32)
    token = r.random(rows).astype(np.float32) if data.draw(st.booleans()) else None
    bias = r.integers(-1000, 1000, (groups, 3)) if data.draw(st.booleans()) else None
    listed = given_list(counts, kind, False)
    (mine,) = mindspeed.load("quant_grouped_matmul").npu_quant_gmm(
        [torch.tensor(x).to(torch.int8)],
        [torch.tensor(w).to(torch.int8)],
        [torch.tensor(scale)],
        [],
        [] if token is None else [torch.tensor(token)],
        [] if bias is None else [torch.tensor(bias).to(torch.int32)],
        listed,
        kind,
        1 if dtype == torch.bfloat16 else 0,
        act,
    )
    parts = []
    for e, (i, j) in enumerate(zip(ends, ends[1:], strict=False)):
        part = (x[i:j] @ w[e] + (0 if bias is None else bias[e])) * scale[e].astype(float)
        part = part if token is None else part * token[i:j, None].astype(float)
        parts.append(ACTIVATIONS[act](part))
    near(mine, np.concatenate(parts), dtype, 2)

    floating, offset = r.standard_normal((rows, 5)), r.integers(-3, 4, (groups, 3)).astype(float)
    floating = numbers(torch.tensor(floating).to(dtype))
    widths = numbers(torch.tensor(r.random((groups, 3)) * 1e-2).to(dtype))
    (mine,) = mindspeed.load("weight_quant_grouped_matmul").npu_weight_quant_gmm(
        [torch.tensor(floating).to(dtype)],
        [torch.tensor(w).to(torch.int8)],
        [torch.tensor(widths).to(dtype)],
        [torch.tensor(offset).to(dtype)],
        [],
        listed,
        kind,
        0,
    )
    want = [
        floating[i:j] @ ((w[e] + offset[e]) * widths[e])
        for e, (i, j) in enumerate(zip(ends, ends[1:], strict=False))
    ]
    near(mine, np.concatenate(want), dtype, 4)


def test_int8_products_refuse():
    x, w = [torch.zeros(4, 2, dtype=torch.int8)], [torch.zeros(2, 2, 3, dtype=torch.int8)]
    call = {"group_list": [2, 4], "group_type": 0, "split_item": 3, "output_dtype": torch.float16}
    scale = [torch.ones(2, 3)]
    for change, text in [
        ({"per_token_scale": [torch.ones(4)]}, "int8 x and weight need scale"),
        ({"scale": [torch.ones(3, 3)]}, "each of the 2 groups, but got 3"),
        ({"scale": scale, "per_token_scale": [torch.ones(3)]}, "each of the 4 rows"),
        ({"scale": scale, "output_dtype": None}, "needs output_dtype"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            torch_npu.npu_grouped_matmul(x, w, **(call | change))
    with pytest.raises(NotImplementedError, match="int8 results"):
        torch_npu.npu_grouped_matmul(x, w, **(call | {"scale": scale, "output_dtype": torch.int8}))


@settings(max_examples=reference.examples(25), deadline=None)
@given(st.data(), counts_of_groups, dtypes, st.sampled_from(["relu", "gelu", "fastgelu", "silu"]))
def test_ffn_drawn(data, counts, dtype, name):
    make = Drawn(data)
    groups, rows = len(counts), sum(counts)
    experts = data.draw(st.sampled_from(["none", "counts", "ends"]))
    w1, w2 = make((groups, 3, 4), dtype), make((groups, 4, 2), dtype)
    b1, b2 = make((groups, 4), dtype), make((groups, 2), dtype)
    x = make((rows, 3), dtype)
    erf = np.vectorize(math.erf, otypes=[float])
    act = {
        "relu": ACTIVATIONS[1],
        "fastgelu": ACTIVATIONS[4],
        "silu": ACTIVATIONS[5],
        # erf of a complex step: its derivative times the step
        "gelu": lambda v: (
            v * 0.5 * (1 + erf(v.real / 2**0.5) + 1j * v.imag * np.sqrt(2 / np.pi) * np.exp(-(v.real**2) / 2))
        ),
    }[name]
    run = mindspeed.load("npu_ffn").npu_ffn
    if experts == "none":
        tensors, ends = [x, w1, w2, b1, b2], [0, rows]
        out = run(x, w1[0], w2[0], name, bias1=b1[0], bias2=b2[0])
    else:
        tensors, ends = [x, w1, w2, b1, b2], np.cumsum([0, *counts])
        given = torch.tensor(counts if experts == "counts" else np.cumsum(counts))
        arguments = (given, None) if experts == "counts" else (None, given)
        out = run(x, w1, w2, name, *arguments, bias1=b1, bias2=b2)

    def hidden(x, w1, b1):
        return [x[i:j] @ w1[e] + b1[e] for e, (i, j) in enumerate(zip(ends, ends[1:], strict=False))]

    def formula(x, w1, w2, b1, b2):
        found = np.concatenate([act(h) @ w2[e] + b2[e] for e, h in enumerate(hidden(x, w1, b1))])
        return [found if np.iscomplexobj(x) else found.real]

    if name == "relu":
        # Rounding can turn the sign of a number near 0, and with it the whole gradient.
        sums = np.concatenate(hidden(*(numbers(t) for t in (x, w1, b1))))
        assume(np.min(np.abs(sums), initial=np.inf) > 8 * torch.finfo(dtype).eps)
    check(formula, [out], tensors, 32)


def test_fastgelu_of_small_numbers_in_float16():
    """exp(-1.702 x) overflows in float16 from x = -6.5 on; the result and the gradient are 0 there, and not NaN."""
    run = mindspeed.load("npu_ffn").npu_ffn
    x = torch.tensor([[-7.0], [-40.0]], dtype=torch.float16, requires_grad=True)
    one = torch.ones(1, 1, dtype=torch.float16)
    out = run(x, one, one, "fastgelu")
    out.sum().backward()
    assert out.abs().max().item() < 1e-4 and x.grad.abs().max().item() < 1e-4


# ---- experts


@settings(max_examples=reference.examples(50), deadline=None)
@given(st.data(), st.integers(1, 6), st.integers(1, 3), st.integers(1, 5), st.integers(0, 6), dtypes)
def test_permute_and_back_drawn(data, tokens, topk, experts, dropped, dtype):
    """Includes fewer rows than copies, and tokens and gradients that are not contiguous."""
    make = Drawn(data)
    indices = make.random.integers(0, experts, (tokens, topk))
    copies = tokens * topk
    rows = max(1, copies - dropped)
    order = sorted(range(copies), key=lambda i: (indices.ravel()[i], i))
    kept = order[:rows]
    x, probs = make((tokens, 3), dtype), make((tokens, topk), dtype)
    permuted, places = torch_npu.npu_moe_token_permute(x, torch.tensor(indices), rows)
    assert [order.index(i) for i in range(copies)] == places.tolist() and places.dtype == torch.int32
    check(lambda x: [x[[c // topk for c in kept]]], [permuted], [x], 8)

    y = make((rows, 3), dtype)

    def formula(y, probs):
        out = np.zeros((tokens, 3), y.dtype)
        for row, copy in enumerate(kept):
            out[copy // topk] += y[row] * probs.ravel()[copy]
        return [out]

    check(formula, [torch_npu.npu_moe_token_unpermute(y, places, probs)], [y, probs], 8)
    if topk == 1:
        one = np.ones((tokens, 1))
        check(lambda y: formula(y, one), [torch_npu.npu_moe_token_unpermute(y, places)], [y], 8)


@settings(max_examples=reference.examples(40), deadline=None)
@given(st.data(), st.integers(1, 6), st.integers(1, 4), st.booleans(), st.booleans(), dtypes)
def test_routing_map_drawn(data, tokens, experts, pad, with_probs, dtype):
    """Permutation by a map, its inverse and both gradient operators, with experts without tokens and tokens without experts."""
    make = Drawn(data)
    r = make.random
    topk = data.draw(st.integers(1, experts))
    chosen = np.zeros((tokens, experts), bool)
    for row in chosen:  # without padding every token has as many experts
        row[r.choice(experts, data.draw(st.integers(0, experts)) if pad else topk, replace=False)] = True
    capacity = data.draw(st.integers(1, tokens))
    pairs = []
    for e in range(experts):
        own = [t for t in range(tokens) if chosen[t, e]]
        others = [t for t in range(tokens) if not chosen[t, e]]
        pairs += [(e, t) for t in ((own + others)[:capacity] if pad else own)]
    take = np.zeros((len(pairs), tokens))
    take[range(len(pairs)), [t for _, t in pairs]] = 1
    x, probs = make((tokens, 3), dtype, False), make((tokens, experts), dtype, False)
    given = probs if with_probs else None
    kind = data.draw(st.sampled_from([torch.bool, torch.uint8, torch.int8]))
    marks = torch.tensor(chosen).to(kind)
    permuted, weights, places = torch_npu.npu_moe_token_permute_with_routing_map(
        x, marks, probs=given, num_out_tokens=capacity * experts if pad else len(pairs), drop_and_pad=pad
    )
    near(permuted, take @ numbers(x), dtype)
    assert places.dtype == torch.int32
    of_rows = np.array([numbers(probs)[t, e] for e, t in pairs]) if with_probs else np.ones(len(pairs))
    assert weights is None if not with_probs else numbers(weights).tolist() == of_rows.tolist()

    g, gp = make((len(pairs), 3), dtype, False), make((len(pairs),), dtype, False)
    gx, gprobs = torch_npu.npu_moe_token_permute_with_routing_map_grad(
        g, gp if with_probs else None, places, marks, experts, tokens, pad
    )
    near(gx, take.T @ numbers(g), dtype)
    if with_probs:
        spread = np.zeros((tokens, experts))
        for (e, t), value in zip(pairs, numbers(gp), strict=True):
            spread[t, e] = value
        near(gprobs, spread, dtype)

    y = make((len(pairs), 3), dtype, False)
    out, index, ids, _ = torch_npu._npu_moe_token_unpermute_with_routing_map(
        y, places, [tokens, 3], probs=given, routing_map=marks, drop_and_pad=pad
    )
    near(out, take.T @ (of_rows[:, None] * numbers(y)), dtype)
    g = make((tokens, 3), dtype, False)
    pair = (index, ids) if pad else (places, places)
    gy, gprobs = torch_npu.npu_moe_token_unpermute_with_routing_map_grad(
        g,
        *pair,
        routing_map=marks,
        permuted_tokens=y,
        probs=given,
        drop_and_pad=pad,
        restore_shape=[tokens, 3],
    )
    near(gy, of_rows[:, None] * (take @ numbers(g)), dtype)
    if with_probs:
        spread = np.zeros((tokens, experts))
        for i, (e, t) in enumerate(pairs):
            spread[t, e] = numbers(g)[t] @ numbers(y)[i]
        near(gprobs, spread, dtype, 16)


@settings(max_examples=reference.examples(30), deadline=None)
@given(st.data(), st.integers(1, 5), st.integers(1, 3), st.integers(3, 5), dtypes)
def test_routing_of_inference_drawn(data, tokens, topk, experts, dtype):
    """Gating, initial routing, counts per expert and the final sum, which has gradients."""
    make = Drawn(data)
    x = make((tokens, experts), dtype, False)
    finished = make.random.random(tokens) < 0.3
    values, chosen, rows = torch_npu.npu_moe_gating_top_k_softmax(x, torch.tensor(finished), topk)
    scores = np.exp(numbers(x) - numbers(x).max(-1, keepdims=True))
    scores = scores / scores.sum(-1, keepdims=True)
    near(values, -np.sort(-scores, -1)[:, :topk], dtype)
    for t in range(tokens):
        if finished[t]:
            assert chosen[t].tolist() == [experts] * topk
        else:
            near(torch.tensor(scores[t][chosen[t].tolist()]).to(dtype), -np.sort(-scores[t])[:topk], dtype)
    assert rows.tolist() == [[k * tokens + t for k in range(topk)] for t in range(tokens)]

    picked = torch.tensor(make.random.integers(0, experts, (tokens, topk))).to(torch.int32)
    active = data.draw(st.integers(1, tokens + 1))
    tensor = make((tokens, 3), dtype, False)
    expanded, places, order = torch_npu.npu_moe_init_routing(tensor, rows, picked, active)
    copies = sorted(
        range(tokens * topk), key=lambda i: (picked.flatten().tolist()[i], i)
    )  # token after token
    assert order.tolist() == [picked.flatten().tolist()[i] for i in copies]
    take = [c // topk for c in copies][: min(active, tokens) * topk]
    assert numbers(expanded).tolist() == numbers(tensor)[take].tolist()
    # places[k * T + t]: the row of token t's k-th copy
    assert places.tolist() == [copies.index(t * topk + k) for k in range(topk) for t in range(tokens)]
    ends = torch_npu.npu_moe_compute_expert_tokens(order, experts)
    assert ends.tolist() == [sum(e <= last for e in order.tolist()) for last in range(experts)]

    y, bias, scales = make((tokens * topk, 3), dtype), make((experts, 3), dtype), make((tokens, topk), dtype)
    skips = [make((tokens, 3), dtype) for _ in range(data.draw(st.integers(0, 2)))]

    def formula(y, bias, scales, *skips):
        out = sum(skips, np.zeros((tokens, 3)))
        out = out.astype(y.dtype)
        for t in range(tokens):
            for k in range(topk):
                out[t] += scales[t, k] * (y[places[k * tokens + t].item()] + bias[picked[t, k].item()])
        return [out]

    pair = [*skips, None, None][:2]
    check(
        formula,
        [torch_npu.npu_moe_finalize_routing(y, *pair, bias, scales, places, picked)],
        [y, bias, scales, *skips],
        16,
    )


def test_routing_of_inference_has_no_derivative():
    x, rows = torch.randn(2, 3, requires_grad=True), torch.tensor([[0], [1]], dtype=torch.int32)
    for out in (
        torch_npu.npu_moe_gating_top_k_softmax(x)[0],
        torch_npu.npu_moe_init_routing(x, rows, rows, 2)[0],
    ):
        with pytest.raises(NotImplementedError, match="derivative for npu_moe_"):
            out.sum().backward()
    assert x.grad is None


# ---- optimizer steps


@settings(max_examples=reference.examples(40), deadline=None)
@given(st.data(), st.integers(1, 9), st.booleans(), st.booleans(), dtypes, dtypes)
def test_adamw_drawn(data, step, amsgrad, maximize, dtype, gradient):
    """Compares three forms of the step with the formula. 16-bit states are rounded once per step."""
    make = Drawn(data)
    shape = data.draw(st.sampled_from([(1,), (5,), (2, 3)]))
    lr, b1, b2, decay, eps = 0.1, 0.8, 0.9, 0.2, 1e-2
    numbers_of = {name: make.random.standard_normal(shape) for name in ("p", "m")}
    numbers_of |= {name: make.random.random(shape) for name in ("v", "top")}
    turned = data.draw(st.booleans())

    def state(name):
        x = torch.tensor(numbers_of[name]).to(dtype)
        return x.t().contiguous().t() if turned and x.dim() == 2 else x

    g = make(shape, gradient, False)
    p, m, v, top = (numbers(state(name)) for name in ("p", "m", "v", "top"))
    up = -numbers(g) if maximize else numbers(g)
    m, v = b1 * m + (1 - b1) * up, b2 * v + (1 - b2) * up * up
    top = np.maximum(top, v)
    second = top if amsgrad else v
    moved = p * (1 - lr * decay) - lr / (1 - b1**step) * m / (np.sqrt(second / (1 - b2**step)) + eps)

    one = [state(name) for name in ("p", "m", "v", "top")]
    torch_npu.npu_apply_fused_adamw_v2(
        one[0], g, *one[1:], torch.tensor([float(step)]), lr, b1, b2, decay, eps, amsgrad, maximize
    )
    two = [state(name) for name in ("p", "m", "v", "top")]
    found = torch_npu.npu_apply_adam_w(
        b1 ** (step - 1),
        b2 ** (step - 1),
        lr,
        decay,
        b1,
        b2,
        eps,
        g,
        two[3] if amsgrad else None,
        amsgrad,
        maximize,
        out=two[:3],
    )
    assert all(a is b for a, b in zip(found, two, strict=False))
    for mine in (one, two):
        for x, want in zip(mine, (moved, m, v, top) if amsgrad else (moved, m, v), strict=False):
            near(x, want, dtype, 2 if dtype.itemsize == 2 else 32)


@settings(max_examples=reference.examples(30), deadline=None)
@given(st.data(), st.integers(1, 9), st.booleans(), st.integers(0, 1), dtypes, dtypes)
def test_ema_adamw_drawn(data, step, correct, mode, dtype, gradient):
    make = Drawn(data)
    g = make((2, 3), gradient, False)
    states = [torch.tensor(make.random.random((2, 3))).to(dtype) for _ in range(4)]
    var, m, v, s = (numbers(x) for x in states)
    own = numbers(g) + 0.3 * var * (1 - mode)
    m, v = 0.7 * m + 0.3 * own, 0.8 * v + 0.2 * own * own
    a, b = (1 - 0.7**step, 1 - 0.8**step) if correct else (1, 1)
    var = var - 0.1 * (m / a / (np.sqrt(v / b) + 1e-2) + 0.3 * var * mode)
    found = torch_npu.npu_apply_fused_ema_adamw(
        g, *states, torch.tensor([step]), 0.1, 0.9, 0.7, 0.8, 1e-2, mode, correct, 0.3
    )
    assert all(a is b for a, b in zip(found, states, strict=True))
    for mine, want in zip(found, (var, m, v, 0.9 * s + 0.1 * var), strict=True):
        near(mine, want, dtype, 2 if dtype.itemsize == 2 else 32)
