"""The element-wise and normalizing operators, drawn: shapes from 0 or 1 up, dtypes, strides, broadcasts.

References are written out in numpy; their gradients are complex steps of the reference (reference.vjp), in float64.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msadapter as torch
from kernels_ascend import mindspeed, norm
from msadapter import torch_npu
from tests.kernels import reference

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
KINDS = ["plain", "turned", "gaps", "spread"]
dtypes = st.sampled_from(DTYPES)
sizes = st.lists(st.integers(1, 4), min_size=1, max_size=4)


def strided(x, kind: str):
    """The same numbers in memory that is contiguous, has its axes in reverse order, has gaps, or has one stride of 0."""
    if kind == "turned":
        order = list(range(x.dim() - 1, -1, -1))
        return x.permute(order).contiguous().permute(order)
    if kind == "gaps" and x.dim():
        return torch.stack([x, torch.full_like(x, 7)], -1).flatten(-2)[..., ::2]
    if kind == "spread" and x.dim() and x.shape[0] > 1:
        return x[:1].expand(x.shape)
    return x


class Drawn:
    """The tensors of a case, with their numbers as float64."""

    def __init__(self, data, seed=None):
        self.data = data
        self.random = np.random.default_rng(data.draw(st.integers(0, 10**6)))

    def __call__(self, shape, dtype, learned=True):
        kind = self.data.draw(st.sampled_from(KINDS))
        x = strided(torch.tensor(self.random.standard_normal(shape)).to(dtype), kind)
        return x.requires_grad_() if learned else x


def numbers(x):
    return x.detach().double().numpy().copy()


def near(mine, want, dtype, factor=8.0) -> None:
    """Allows one rounding of the result and the float32 arithmetic before it: a few eps of the largest number."""
    assert mine.dtype == dtype
    atol = factor * float(torch.finfo(dtype).eps) * max(1.0, np.abs(want).max(initial=0.0))
    np.testing.assert_allclose(numbers(mine), want, rtol=0, atol=atol)


def check(formula, operator, tensors, *, factor=8.0):
    """Compares outputs and gradients of operator(*tensors) with the formula of their numbers."""
    arrays = [numbers(x) for x in tensors]
    outputs = operator(*tensors)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    wants = formula(*arrays)
    for mine, want in zip(outputs, wants, strict=True):
        assert tuple(mine.shape) == want.shape
        near(mine, want, mine.dtype, factor)
    r = np.random.default_rng(7)
    back = [torch.tensor(r.standard_normal(x.shape)).to(x.dtype) for x in outputs]
    kept = [(x, g) for x, g in zip(outputs, back, strict=True) if x.requires_grad]
    found = torch.autograd.grad([x for x, _ in kept], tensors, [g for _, g in kept])
    gradients = [numbers(g) if x.requires_grad else None for x, g in zip(outputs, back, strict=True)]
    for x, mine, want in zip(tensors, found, reference.vjp(formula, arrays, gradients), strict=True):
        near(mine, want, x.dtype, factor)


# ---- norms


@settings(max_examples=reference.examples(40), deadline=None)
@given(st.data(), sizes, dtypes, st.booleans(), st.integers(0, 1))
def test_rms_norm_drawn(data, shape, dtype, wide_gamma, empty):
    make = Drawn(data)
    axes = data.draw(st.integers(1, len(shape)))
    shape = [0, *shape] if empty else shape
    x = make(shape, dtype)
    gamma = make(shape[len(shape) - axes :], torch.float32 if wide_gamma and dtype.itemsize == 2 else dtype)

    def formula(x, gamma):
        over = tuple(range(-gamma.ndim, 0))
        rstd = 1 / np.sqrt((x * x).mean(over, keepdims=True) + 1e-3)
        return x * rstd * gamma, rstd

    def operator(x, gamma):
        y, rstd = torch_npu.npu_rms_norm(x, gamma, 1e-3)
        assert torch.equal(mindspeed.load("rms_norm").rms_norm(x, gamma, 1e-3), y)
        assert y.dtype == x.dtype and rstd.dtype == (
            torch.float64 if dtype == torch.float64 else torch.float32
        )
        return y, rstd.detach()

    # 1 / sqrt(eps) bounds what a rounding of x^2 is enlarged by
    check(formula, operator, (x, gamma), factor=64)


@settings(max_examples=reference.examples(25), deadline=None)
@given(st.data(), sizes, dtypes)
def test_add_rms_norm_drawn(data, shape, dtype):
    make = Drawn(data)
    x, y, gamma = make(shape, dtype), make(shape, dtype), make(shape[-1:], dtype)

    def formula(x, y, gamma):
        total = x + y
        rstd = 1 / np.sqrt((total * total).mean(-1, keepdims=True) + 1e-2)
        return total * rstd * gamma, total

    def operator(x, y, gamma):
        y, _, total = torch_npu.npu_add_rms_norm(x, y, gamma, 1e-2)
        return y, total

    check(formula, operator, (x, y, gamma), factor=64)


@settings(max_examples=reference.examples(25), deadline=None)
@given(st.data(), st.integers(1, 3), st.integers(1, 3), st.integers(2, 6), dtypes, st.booleans())
def test_dropout_add_norm_drawn(data, batch, length, hidden, dtype, rms):
    """All options are drawn, but there is no dropout. Other tests check its random draws."""
    make = Drawn(data)
    wanted = {"residual": (batch, length, hidden), "rowscale": (batch, length), "layerscale": (hidden,)}
    names = ["x0", "weight"] + [name for name in wanted if data.draw(st.booleans())]
    names += [] if rms else ["bias"]
    shapes = {"x0": (batch, length, hidden), "weight": (hidden,), "bias": (hidden,)} | wanted
    tensors = [make(shapes[name], dtype) for name in names]

    def formula(*arrays):
        a = dict(zip(names, arrays, strict=True))
        total = a["x0"] * a.get("rowscale", np.ones((1, 1)))[..., None] * a.get("layerscale", 1.0) + a.get(
            "residual", 0.0
        )
        centred = total if rms else total - total.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-2) * a["weight"] + a.get(
            "bias", 0.0
        ), total

    def operator(*tensors):
        a = dict(zip(names, tensors, strict=True))
        order = ("x0", "weight", "residual", "bias", "rowscale", "layerscale")
        run = mindspeed.load("npu_dropout_add_layer_norm").npu_dropout_add_layer_norm
        y, total, mask = run(*(a.get(n) for n in order), 0.0, 1e-2, True, False, rms, True)
        assert mask.all() and mask.shape == a["x0"].shape
        return y, total

    check(formula, operator, tensors, factor=64)


def test_dropped_parts_of_dropout_add_norm_have_no_gradient():
    torch.manual_seed(3)
    x = torch.randn(2, 3, 8, dtype=torch.float64).requires_grad_()
    _, total, mask = norm.dropout_add_norm(
        x, torch.ones(8).double(), None, None, None, None, 0.5, 1e-5, True, False, True, True
    )
    total.sum().backward()
    assert torch.equal(x.grad, mask.double() * 2)


# ---- activations


@settings(max_examples=reference.examples(40), deadline=None)
@given(st.data(), sizes, dtypes)
def test_swiglu_drawn(data, shape, dtype):
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    shape[dim] = 2 * data.draw(st.integers(0, 3))
    x = Drawn(data)(shape, dtype)

    def formula(x):
        a, b = np.split(x, 2, dim)
        return (a / (1 + np.exp(-a)) * b,)

    run = data.draw(st.sampled_from([torch_npu.npu_swiglu, mindspeed.load("swiglu").swiglu]))
    check(formula, lambda x: run(x, dim), (x,))
    g = Drawn(data)(torch_npu.npu_swiglu(x, dim).shape, dtype, learned=False)
    mine = torch_npu.npu_swiglu_backward(g, x.detach(), dim)
    near(mine, reference.vjp(formula, [numbers(x)], [numbers(g)])[0], dtype)


@settings(max_examples=reference.examples(30), deadline=None)
@given(st.data(), sizes, dtypes, st.booleans())
def test_geglu_drawn(data, shape, dtype, left):
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    shape[dim] = 2 * data.draw(st.integers(0, 3))
    x = Drawn(data)(shape, dtype)

    def formula(x):
        kept, gate = np.split(x, 2, dim)
        kept, gate = (gate, kept) if left else (kept, gate)
        activated = 0.5 * gate * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
        return kept * activated, activated

    check(formula, lambda x: torch_npu.npu_geglu(x, dim, 1, left), (x,))
    exact, activated = torch_npu.npu_geglu(x.detach(), dim, 0, left)
    kept, gate = reversed(x.detach().chunk(2, dim)) if left else x.detach().chunk(2, dim)
    wide = torch.nn.functional.gelu(gate.double())
    near(activated, numbers(wide), dtype)
    near(exact, numbers(wide * kept.double()), dtype)


@settings(max_examples=reference.examples(25), deadline=None)
@given(st.data(), st.integers(1, 3), st.integers(1, 3), st.integers(1, 5), st.integers(1, 5), dtypes)
def test_scaled_masked_softmax_drawn(data, batch, heads, queries, keys, dtype):
    triangle = queries == keys and data.draw(st.booleans())
    x = Drawn(data)((batch, heads, queries, keys), dtype)
    shape = [data.draw(st.sampled_from([1, n])) for n in (batch, heads, queries, keys)]
    hide = np.random.default_rng(1).random(shape) < data.draw(st.sampled_from([0.0, 0.5, 1.0]))

    def formula(x):
        hidden = np.triu(np.ones((queries, keys), bool), 1) if triangle else hide
        s = np.where(hidden, -10000.0, x * 0.7)
        e = np.exp(s - s.real.max(-1, keepdims=True))
        return (e / e.sum(-1, keepdims=True),)

    check(formula, lambda x: torch_npu.npu_scaled_masked_softmax(x, torch.tensor(hide), 0.7, triangle), (x,))


def test_a_triangle_of_unequal_lengths_is_ambiguous():
    with pytest.raises(RuntimeError, match="as many keys as queries"):
        torch_npu.npu_scaled_masked_softmax(
            torch.zeros(1, 1, 2, 3), torch.zeros(1, dtype=torch.bool), 1.0, True
        )


# ---- rotary embedding


def turned(x, mode):
    out = np.empty_like(x)
    if mode:
        out[..., 0::2], out[..., 1::2] = -x[..., 1::2], x[..., 0::2]
    else:
        half = x.shape[-1] // 2
        out[..., :half], out[..., half:] = -x[..., half:], x[..., :half]
    return out


@settings(max_examples=reference.examples(60), deadline=None)
@given(
    st.data(),
    st.lists(st.integers(1, 3), min_size=2, max_size=3),
    st.integers(1, 3),
    dtypes,
    st.integers(0, 1),
)
def test_rotary_drawn(data, shape, half, dtype, mode):
    make = Drawn(data)
    shape = [*shape, 2 * half]
    x = make(shape, dtype)
    angle = torch.float32 if dtype.itemsize == 2 and data.draw(st.booleans()) else dtype
    lead = [data.draw(st.sampled_from([1, n])) for n in shape[:-1]]
    cos, sin = make([*lead, 2 * half], angle), make([*lead, 2 * half], angle)

    def formula(x, cos, sin):
        return (x * cos + turned(x, mode) * sin,)

    name = data.draw(st.sampled_from(["position", "mul", "both"]))
    word = ["half", "interleave"][mode]
    operator = {
        "position": lambda *a: torch_npu.npu_rotary_position_embedding(*a, mode),
        "mul": lambda *a: torch_npu.npu_rotary_mul(*a, word),
        "both": lambda x, *a: torch_npu.npu_apply_rotary_pos_emb(x.detach(), x, *a, "BSND", word)[1],
    }[name]
    check(formula, operator, (x, cos, sin))


# ---- ring attention


@settings(max_examples=reference.examples(40), deadline=None)
@given(st.data(), dtypes, st.sampled_from(["SBH", "TND"]), st.booleans())
def test_ring_attention_update_drawn(data, dtype, layout, leading_zero):
    make = Drawn(data)
    number = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    heads, size = number(1, 3), number(1, 3)
    if layout == "SBH":
        length, batch = number(1, 4), number(1, 3)
        shape, stats, ends = (length, batch, heads * size), (batch, heads, length, 8), None
    else:
        counts = [number(0, 3) for _ in range(number(1, 3))]
        total = sum(counts) + number(0, 1)
        shape, stats, ends = (total, heads, size), (total, heads, 8), np.cumsum([0] * leading_zero + counts)
    statistic = torch.float64 if dtype == torch.float64 else torch.float32
    outs = [make(shape, dtype) for _ in range(2)]
    tops = [
        torch.tensor(np.repeat(make.random.standard_normal((*stats[:-1], 1)), 8, -1)).to(statistic)
        for _ in range(2)
    ]
    sums = [
        torch.tensor(np.repeat(make.random.random((*stats[:-1], 1)) + 1, 8, -1)).to(statistic)
        for _ in range(2)
    ]
    tensors = [x.requires_grad_() for x in (outs[0], tops[0], sums[0], outs[1], tops[1], sums[1])]

    def by_token(x):
        """The factor of each token and head."""
        if layout == "SBH":
            return np.repeat(x[..., 0].transpose(2, 0, 1), size, -1)
        found, flat, at = np.zeros((*shape[:2], 1), x.dtype), x[..., 0].ravel(), 0
        for first, last in zip([0, *ends], ends, strict=False):
            for n in range(heads):
                for token in range(first, last):
                    found[token, n, 0] = flat[at]
                    at += 1
        return found

    def formula(a, a_top, a_sum, b, b_top, b_sum):
        top = np.where(a_top.real >= b_top.real, a_top, b_top)
        one, two = a_sum * np.exp(a_top - top), b_sum * np.exp(b_top - top)
        return a * by_token(one / (one + two)) + b * by_token(two / (one + two)), top, one + two

    def operator(*parts):
        given = None if ends is None else torch.tensor(ends)
        return torch_npu.npu_ring_attention_update(*parts, given, layout)

    check(formula, operator, tensors, factor=32)
