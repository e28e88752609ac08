"""npu_fusion_attention against the plain formula: layouts, sparse modes, biases, packed sequences, dropout, refusals."""

from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msadapter as torch
from kernels_ascend import attention_masks, attention_tiles
from kernels_ascend.attention_calls import (
    npu_fusion_attention,
    npu_fusion_attention_grad,
    npu_fusion_attention_grad_v2,
    npu_fusion_attention_v2,
    npu_incre_flash_attention,
    npu_prompt_flash_attention,
)

_spec = importlib.util.spec_from_file_location("kernels_reference", Path(__file__).with_name("reference.py"))
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)

TRIANGLE = torch.ones(2048, 2048, dtype=torch.bool).triu(1)


def to_layout(x, layout):
    """(B, N, S, D) in the layout. For TND, one sequence after the other."""
    b, n, s, d = x.shape
    return {
        "BNSD": lambda: x,
        "BSND": lambda: x.transpose(0, 2, 1, 3),
        "BSH": lambda: x.transpose(0, 2, 1, 3).reshape(b, s, n * d),
        "SBH": lambda: x.transpose(2, 0, 1, 3).reshape(s, b, n * d),
        "TND": lambda: x.transpose(0, 2, 1, 3).reshape(b * s, n, d),
    }[layout]()


def tensor(x, dtype=torch.float64):
    return torch.tensor(np.ascontiguousarray(x)).to(dtype).requires_grad_()


@pytest.fixture
def small_tiles(monkeypatch):
    monkeypatch.setattr(attention_tiles, "ROWS", 3)
    monkeypatch.setattr(attention_tiles, "TILE", 40)


def made(seed, b, n, kv, sq, sk, d, dv=None):
    r = np.random.default_rng(seed)
    return (
        r.standard_normal((b, n, sq, d)),
        r.standard_normal((b, kv, sk, d)),
        r.standard_normal((b, kv, sk, dv or d)),
        r.standard_normal((b, n, sq, dv or d)),
    )


def compare(arrays, expected, layout, heads, tolerance=1e-9, dtype=torch.float64, **arguments):
    """Compares forward and backward of the operator with the results of reference.attention."""
    q, k, v, g = arrays
    out, top, total, gradient = expected
    tq, tk, tv = (tensor(to_layout(x, layout), dtype) for x in (q, k, v))
    found = npu_fusion_attention_v2(tq, tk, tv, heads, layout, **arguments)
    near = {"atol": tolerance, "rtol": tolerance}
    np.testing.assert_allclose(found[0].detach().double().numpy(), to_layout(out, layout), **near)
    stats = [x[..., 0].double().numpy() for x in found[1:3]]
    if layout == "TND":
        b, n, s = top.shape
        stats = [x.reshape(b, n, s) for x in stats]
    sees = np.isfinite(top)
    np.testing.assert_allclose(stats[0][sees], top[sees], **near)
    np.testing.assert_allclose(stats[1][sees], total[sees], **near)
    assert all((x[..., :1] == x).all() and x.shape[-1] == 8 for x in found[1:3])
    found[0].backward(tensor(to_layout(g, layout), dtype).detach())
    for mine, theirs in zip((tq, tk, tv), gradient(g), strict=False):
        np.testing.assert_allclose(mine.grad.double().numpy(), to_layout(theirs, layout), **near)
    return found


@pytest.mark.parametrize("layout", ["BSH", "SBH", "BSND", "BNSD"])
@pytest.mark.parametrize(("heads", "kv"), [(4, 4), (4, 2), (3, 1)])
def test_layouts_and_grouped_heads(small_tiles, layout, heads, kv):
    arrays = made(1, 2, heads, kv, 7, 10, 4)
    expected = reference.attention(*arrays[:3], np.zeros((7, 10), bool), 0.3)
    compare(arrays, expected, layout, heads, scale=0.3)


@pytest.mark.parametrize("layout", ["BSND", "BNSD", "BSH"])
def test_value_heads_of_another_size(layout):
    arrays = made(2, 2, 4, 2, 5, 6, 4, 3)
    compare(arrays, reference.attention(*arrays[:3], np.zeros((5, 6), bool), 1.0), layout, 4)


@pytest.mark.parametrize("shape", ["BNSS", "B1SS", "11SS", "SS"])
@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8])
@pytest.mark.parametrize("mode", [0, 1])
def test_given_masks(small_tiles, shape, dtype, mode):
    arrays = made(3, 2, 2, 2, 6, 9, 4)
    r = np.random.default_rng(4)
    size = {"BNSS": (2, 2, 6, 9), "B1SS": (2, 1, 6, 9), "11SS": (1, 1, 6, 9), "SS": (6, 9)}[shape]
    mask = r.random(size) < 0.4
    mask[..., 0] = False
    expected = reference.attention(*arrays[:3], mask, 0.5)
    compare(arrays, expected, "BNSD", 2, scale=0.5, atten_mask=torch.tensor(mask).to(dtype), sparse_mode=mode)


@pytest.mark.parametrize(
    ("mode", "pre", "following"),
    [(2, 2, 1), (3, 2, 1), (4, 2, 1), (4, 0, 0), (4, 100, 2), (4, 3, -1), (4, -1, 2)],
)
@pytest.mark.parametrize(("sq", "sk"), [(6, 6), (5, 9), (9, 5), (1, 7), (7, 1)])
def test_compressed_masks(small_tiles, mode, sq, sk, pre, following):
    arrays = made(5, 2, 4, 2, sq, sk, 4)
    hide = reference.hidden(mode, sq, sk, pre, following, TRIANGLE)
    compare(
        arrays,
        reference.attention(*arrays[:3], hide, 0.5),
        "BSH",
        4,
        scale=0.5,
        atten_mask=TRIANGLE,
        sparse_mode=mode,
        pre_tokens=pre,
        next_tokens=following,
    )


def test_mode_0_joins_mask_and_band(small_tiles):
    arrays = made(6, 1, 2, 2, 8, 8, 4)
    mask = np.random.default_rng(1).random((8, 8)) < 0.2
    hide = mask | reference.hidden(0, 8, 8, 3, 1, mask)
    compare(
        arrays,
        reference.attention(*arrays[:3], hide, 1.0),
        "SBH",
        2,
        atten_mask=torch.tensor(mask),
        pre_tokens=3,
        next_tokens=1,
    )


def prefix_mask():
    rest = torch.zeros(1024, 2048, dtype=torch.bool)
    rest[:, 1024:] = True
    return torch.cat([TRIANGLE, rest])


@pytest.mark.parametrize(("sq", "sk"), [(5, 8), (7, 7)])
def test_prefix(small_tiles, sq, sk):
    arrays = made(7, 2, 2, 1, sq, sk, 4)
    prefix = [sk - sq + 1, sk - 1]
    hide = np.stack([reference.hidden(6, sq, sk, 0, 0, TRIANGLE, n) for n in prefix])[:, None]
    expected = reference.attention(*arrays[:3], hide, 0.5)
    compare(arrays, expected, "BSH", 2, scale=0.5, atten_mask=prefix_mask(), sparse_mode=6, prefix=prefix)
    compare(
        arrays, expected, "BNSD", 2, scale=0.5, atten_mask=torch.tensor(hide), sparse_mode=5, prefix=prefix
    )


def packed_expected(parts, mode, lengths, scale, pre=0, following=0, prefix=None, mask=None):
    filled = [i for i, (a, _) in enumerate(lengths) if a]
    special = {7: filled[-1], 8: filled[0]}.get(mode)
    results = []
    for i, ((q, k, v, _), (a, b)) in enumerate(zip(parts, lengths, strict=True)):
        hide = reference.hidden(mode, a, b, pre, following, mask, prefix[i] if prefix else 0, i == special)
        if mode in (0, 1) and mask is not None:
            hide = hide | mask.numpy()[:a, :b]
        results.append(reference.attention(q, k, v, hide, scale))
    return results


@pytest.mark.parametrize("mode", [0, 1, 2, 3, 4, 6, 7, 8])
@pytest.mark.parametrize("heads", [(2, 2), (4, 2)])
def test_packed_sequences(small_tiles, mode, heads):
    lengths = [(4, 4), (3, 6), (5, 5), (1, 2)]
    n, kv = heads
    parts = [made(10 + i, 1, n, kv, a, b, 4) for i, (a, b) in enumerate(lengths)]
    prefix = [b - a + 1 for a, b in lengths] if mode == 6 else None
    mask = {0: torch.ones(5, 6, dtype=torch.bool).triu(2), 6: prefix_mask()}.get(mode, TRIANGLE)
    if mode == 1:
        mask = torch.ones(5, 6, dtype=torch.bool).triu(1)
    expected = packed_expected(parts, mode, lengths, 0.5, 2, 1, prefix, mask)
    packed = [np.concatenate([to_layout(p[i], "TND") for p in parts]) for i in range(4)]
    q, k, v = (tensor(x) for x in packed[:3])
    ends = [np.cumsum([p[i] for p in lengths]).tolist() for i in (0, 1)]
    call = {
        "scale": 0.5,
        "atten_mask": mask,
        "sparse_mode": mode,
        "pre_tokens": 2,
        "next_tokens": 1,
        "prefix": prefix,
        "actual_seq_qlen": ends[0],
        "actual_seq_kvlen": ends[1],
    }
    if mode == 0:
        call.update(pre_tokens=2147483647, next_tokens=2147483647)
        expected = packed_expected(parts, 1, lengths, 0.5, mask=mask)
    found = npu_fusion_attention_v2(q, k, v, n, "TND", **call)
    want = np.concatenate([to_layout(e[0], "TND") for e in expected])
    np.testing.assert_allclose(found[0].detach().numpy(), want, atol=1e-9)
    want = np.concatenate([e[1].ravel() for e in expected])  # each sequence lies as (N, S)
    np.testing.assert_allclose(found[1][..., 0].numpy().ravel(), want, atol=1e-9)
    assert found[6] == n * sum(a * b for a, b in lengths)
    found[0].backward(torch.tensor(packed[3]))
    gradients = [e[3](p[3]) for e, p in zip(expected, parts, strict=True)]
    for i, mine in enumerate((q, k, v)):
        want = np.concatenate([to_layout(g[i], "TND") for g in gradients])
        np.testing.assert_allclose(mine.grad.numpy(), want, atol=1e-9)


def test_an_empty_sequence_and_a_tail_without_one():
    lengths = [(2, 2), (0, 0), (3, 3)]
    parts = [made(20 + i, 1, 2, 2, a, b, 4) for i, (a, b) in enumerate(lengths)]
    q, k, v = (
        torch.tensor(np.concatenate([to_layout(p[i], "TND") for p in parts] + [np.ones((2, 2, 4))]))
        for i in range(3)
    )
    out = npu_fusion_attention(
        q, k, v, 2, "TND", scale=1.0, actual_seq_qlen=[2, 2, 5], actual_seq_kvlen=[2, 2, 5]
    )[0]
    expected = packed_expected([p for p in parts if p[0].size], 0, [(2, 2), (3, 3)], 1.0)
    np.testing.assert_allclose(
        out[:5].numpy(), np.concatenate([to_layout(e[0], "TND") for e in expected]), atol=1e-9
    )
    assert not out[5:].any()


@pytest.mark.parametrize("pse_type", [0, 1])
@pytest.mark.parametrize("shape", [(2, 4, 6, 9), (1, 4, 6, 9), (2, 4, 1, 9)])
def test_given_bias_and_its_gradient(small_tiles, pse_type, shape):
    arrays = made(8, 2, 4, 2, 6, 9, 4)
    bias = np.random.default_rng(2).standard_normal(shape)
    before, after = (bias, 0.0) if pse_type else (0.0, bias)
    expected = reference.attention(*arrays[:3], np.zeros((6, 9), bool), 0.5, before, after)
    pse = tensor(bias)
    compare(arrays, expected, "BSND", 4, scale=0.5, pse=pse, pse_type=pse_type)
    ds = expected[3](arrays[3])[3] * (0.5 if pse_type else 1.0)
    axes = tuple(i for i, n in enumerate(shape) if n == 1)
    np.testing.assert_allclose(pse.grad.numpy(), ds.sum(axes, keepdims=True) if axes else ds, atol=1e-9)


@pytest.mark.parametrize("pse_type", [2, 3])
@pytest.mark.parametrize("per_batch", [False, True])
def test_alibi_made_inside(small_tiles, pse_type, per_batch):
    arrays = made(9, 2, 4, 2, 6, 9, 4)
    slopes = np.random.default_rng(3).random((2, 4) if per_batch else (4,)).astype(np.float32)
    distance = np.abs(np.arange(6)[:, None] + 3 - np.arange(9) - 1).astype(np.float64)
    distance = np.sqrt(distance) if pse_type == 3 else distance
    after = -distance * slopes.reshape(-1, 4, 1, 1)
    expected = reference.attention(*arrays[:3], np.zeros((6, 9), bool), 0.5, 0.0, after)
    compare(
        arrays,
        expected,
        "BNSD",
        4,
        1e-6,
        scale=0.5,
        pse=torch.tensor(slopes),
        pse_type=pse_type,
        q_start_idx=[3],
        kv_start_idx=[1],
    )


def test_compressed_alibi():
    n, s = 2, 1100
    arrays = made(11, 1, n, n, s, s, 4)
    distance = -np.abs(np.arange(s)[:, None] - np.arange(s)) * np.array([0.01, 0.003])[:, None, None]
    hide = np.triu(np.ones((s, s), bool), 1)
    expected = reference.attention(*arrays[:3], hide, 0.5, 0.0, distance[None])
    compressed = torch.tensor(distance[None, :, -1024:])
    compare(
        arrays, expected, "BNSD", n, scale=0.5, pse=compressed, pse_type=0, atten_mask=TRIANGLE, sparse_mode=2
    )


def test_rows_that_see_nothing_give_zeros():
    arrays = made(12, 1, 2, 2, 4, 4, 4)
    mask = np.zeros((4, 4), bool)
    mask[2] = True
    found = compare(
        arrays,
        reference.attention(*arrays[:3], mask, 1.0),
        "BNSD",
        2,
        atten_mask=torch.tensor(mask),
        sparse_mode=1,
    )
    assert not found[0][:, :, 2].any()
    assert (found[1][:, :, 2] < -3e38).all()
    assert (found[2][:, :, 2] == 1).all()


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float32, 2e-5), (torch.float16, 4e-3), (torch.bfloat16, 4e-2)]
)
def test_dtypes(dtype, tolerance):
    arrays = [np.asarray(torch.tensor(x).to(dtype).double().numpy()) for x in made(13, 2, 4, 2, 6, 6, 8)]
    hide = reference.hidden(2, 6, 6, 0, 0, TRIANGLE)
    found = compare(
        arrays,
        reference.attention(*arrays[:3], hide, 0.35),
        "BSH",
        4,
        tolerance,
        dtype,
        scale=0.35,
        atten_mask=TRIANGLE,
        sparse_mode=2,
    )
    assert found[0].dtype == dtype
    assert found[1].dtype == found[2].dtype == torch.float32


def test_dropout_is_the_same_in_forward_and_backward(small_tiles):
    """A suitable value shows the dropout factors. Then both passes must use them."""
    q, k, _, g = made(14, 1, 2, 2, 6, 8, 8)
    eye = np.broadcast_to(np.eye(8), (1, 2, 8, 8)).copy()
    torch.manual_seed(5)
    tq, tk, tv = tensor(q), tensor(k), tensor(eye)
    out, top, total, _, seed, offset, numels = npu_fusion_attention(
        tq, tk, tv, 2, "BNSD", scale=0.5, keep_prob=0.6
    )
    plain = reference.attention(q, k, eye, np.zeros((6, 8), bool), 0.5)
    keep = out.detach().numpy() / plain[0]
    assert set(np.round(keep, 6).ravel()) == {0.0, round(1 / 0.6, 6)}
    assert numels == 2 * 6 * 8
    expected = reference.attention(q, k, eye, np.zeros((6, 8), bool), 0.5, keep=keep)
    out.backward(torch.tensor(g))
    for mine, theirs in zip((tq, tk, tv), expected[3](g), strict=False):
        np.testing.assert_allclose(mine.grad.numpy(), theirs, atol=1e-9)
    found = npu_fusion_attention_grad(
        tq.detach(),
        tk.detach(),
        tv.detach(),
        torch.tensor(g),
        2,
        "BNSD",
        softmax_max=top,
        softmax_sum=total,
        attention_in=out.detach(),
        scale_value=0.5,
        keep_prob=0.6,
        seed=seed,
        offset=offset,
        numels=numels,
    )
    for mine, theirs in zip(found[:3], expected[3](g), strict=False):
        np.testing.assert_allclose(mine.numpy(), theirs, atol=1e-9)


def test_dropout_follows_the_generator():
    q, k, v, _ = (torch.tensor(x) for x in made(15, 1, 2, 2, 30, 30, 4))

    def run():
        return npu_fusion_attention(q, k, v, 2, "BNSD", keep_prob=0.5)

    torch.manual_seed(1)
    first, second = run(), run()
    torch.manual_seed(1)
    again = run()
    assert torch.equal(first[0], again[0])
    assert first[4] == again[4] != second[4]
    assert not torch.equal(first[0], second[0])
    state = torch.get_rng_state()
    npu_fusion_attention(q, k, v, 2, "BNSD")
    assert torch.equal(state, torch.get_rng_state())


def test_gradient_of_a_part_of_the_keys_adds_up(small_tiles):
    """Ring attention: with the statistics of complete rows, the gradients of parts of the keys add up to the whole gradient."""
    q, k, v, g = (torch.tensor(x) for x in made(16, 2, 4, 2, 5, 8, 4))
    out, top, total, *_ = npu_fusion_attention(q, k, v, 4, "BNSD", scale=0.5)
    saved = {"softmax_max": top, "softmax_sum": total, "attention_in": out, "scale_value": 0.5}
    whole = npu_fusion_attention_grad(q, k, v, g, 4, "BNSD", **saved)
    halves = [
        npu_fusion_attention_grad(q, k[:, :, s], v[:, :, s], g, 4, "BNSD", **saved)
        for s in (slice(0, 3), slice(3, 8))
    ]
    assert torch.allclose(halves[0][0] + halves[1][0], whole[0])
    for i in (1, 2):
        assert torch.allclose(torch.cat([h[i] for h in halves], 2), whole[i])
    assert whole[3].numel() == 0


def test_rotary_part_apart():
    q, k, v, g = (torch.tensor(x) for x in made(17, 2, 4, 4, 5, 5, 6, 4))
    leaves = [x.clone().requires_grad_() for x in (q[..., :4], k[..., :4], v, q[..., 4:], k[..., 4:])]
    out, top, total, *_ = npu_fusion_attention_v2(
        *leaves[:3], 4, "BNSD", scale=0.5, query_rope=leaves[3], key_rope=leaves[4]
    )
    expected = reference.attention(*(x.numpy() for x in (q, k, v)), np.zeros((5, 5), bool), 0.5)
    np.testing.assert_allclose(out.detach().numpy(), expected[0], atol=1e-9)
    out.backward(g)
    a, b, c, pse, d, e = npu_fusion_attention_grad_v2(
        *(x.detach() for x in leaves[:3]),
        g,
        4,
        "BNSD",
        softmax_max=top,
        softmax_sum=total,
        attention_in=out.detach(),
        scale_value=0.5,
        query_rope=leaves[3].detach(),
        key_rope=leaves[4].detach(),
    )
    for mine, leaf in zip((a, b, c, d, e), leaves, strict=True):
        assert torch.allclose(mine, leaf.grad)
    assert pse.numel() == 0


def test_second_derivatives():
    leaves = [tensor(x) for x in made(18, 1, 2, 1, 3, 3, 2)[:3]]
    mask = torch.ones(3, 3, dtype=torch.bool).triu(1)
    assert torch.autograd.gradgradcheck(
        lambda *x: npu_fusion_attention(*x, 2, "BNSD", atten_mask=mask)[0], leaves
    )
    packed = [x.detach().squeeze(0).transpose(0, 1).clone().requires_grad_() for x in leaves]
    assert torch.autograd.gradgradcheck(
        lambda *x: npu_fusion_attention(*x, 2, "TND", actual_seq_qlen=[1, 3], actual_seq_kvlen=[1, 3])[0],
        packed,
    )


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_ragged_sizes(data):
    pick = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
    b, kv, group, sq, sk, d, mode = (
        pick(1, 3),
        pick(1, 3),
        pick(1, 3),
        pick(1, 9),
        pick(1, 9),
        pick(1, 5),
        pick(2, 4),
    )
    layout = data.draw(st.sampled_from(["BSH", "SBH", "BSND", "BNSD"]))
    pre, following = pick(-2, 9), pick(-2, 9)
    arrays = made(pick(0, 1000), b, kv * group, kv, sq, sk, d)
    hide = reference.hidden(mode, sq, sk, pre, following, TRIANGLE)
    compare(
        arrays,
        reference.attention(*arrays[:3], hide, 0.4),
        layout,
        kv * group,
        scale=0.4,
        atten_mask=TRIANGLE,
        sparse_mode=mode,
        pre_tokens=pre,
        next_tokens=following,
    )


def test_memory_is_linear_in_the_length():
    """No tensor of a tile has more elements than the limit, for any length."""
    for n in (512, 4096):
        dense = attention_tiles.Dense(
            torch.empty(1, 1, n, 2),
            torch.empty(1, 1, n, 2),
            torch.empty(1, 1, n, 2),
            [attention_tiles.Visible()],
        )
        sizes = [
            (x.rows.stop - x.rows.start) * (x.columns.stop - x.columns.start)
            for x in attention_tiles.tiles(dense)
        ]
        assert sum(sizes) == n * n
        assert max(sizes) <= attention_tiles.ROWS * n


@pytest.mark.parametrize("mode", [1, 2, 3, 4])
def test_a_mode_without_its_mask_hides_nothing(mode):
    q, k, v = (torch.randn(2, 4, 6, 8) for _ in range(3))
    with pytest.warns(UserWarning, match="every score is computed"):
        found = npu_fusion_attention_v2(q, k, v, 4, "BNSD", sparse_mode=mode, pre_tokens=1, next_tokens=0)[0]
    assert torch.equal(found, npu_fusion_attention_v2(q, k, v, 4, "BNSD")[0])


def wrong_prefix_masks():
    """The rows below the triangle are false in the left half, true in the right half. One number is changed."""
    for row, column in (
        (2048, 0),
        (2500, 700),
        (2500, 1000),
        (3071, 1023),
        (2048, 1024),
        (2500, 1300),
        (3071, 2047),
    ):
        mask = prefix_mask().clone()
        mask[row, column] = not mask[row, column]
        yield mask


@pytest.mark.parametrize("left", [None, 0, 1, 3])
@pytest.mark.parametrize("right", [None, 0, 2, -1])
@pytest.mark.parametrize("prefix", [0, 2])
def test_a_tile_has_a_mask_only_if_it_hides_something(left, right, prefix):
    band = attention_masks.Visible(left, right, prefix)
    i, j = np.arange(9)[:, None], np.arange(9)
    hidden = np.zeros((9, 9), bool)
    hidden |= False if left is None else j < i - left
    hidden |= False if right is None else j > i + right
    hidden &= j >= prefix
    for (i0, i1), (j0, j1) in itertools.product(itertools.combinations(range(0, 10, 3), 2), repeat=2):
        for shift in range(2):
            found = band.hidden((i0, i1), (j0 + shift, j1), torch.device("cpu"))
            part = hidden[i0:i1, j0 + shift : j1]
            if found is not None:
                np.testing.assert_array_equal(np.broadcast_to(found.numpy(), part.shape), part)
                assert prefix or part.any()
            else:
                assert not part.any()


@pytest.mark.parametrize("layout", ["BNSD", "TND"])
@pytest.mark.parametrize("scale", [0.5, 2.0])
def test_second_derivatives_with_a_scale(layout, scale):
    """The formula that second derivatives use is the operator: values, gradients, and theirs by finite differences."""
    arrays = made(31, 1, 2, 1, 3, 4, 2)
    q, k, v = (tensor(to_layout(x, layout)) for x in arrays[:3])
    ends = {"actual_seq_qlen": [3], "actual_seq_kvlen": [4]} if layout == "TND" else {}

    def run(q, k, v):
        return npu_fusion_attention(q, k, v, 2, layout, scale=scale, **ends)[0]

    expected = reference.attention(*arrays[:3], np.zeros((3, 4), bool), scale)
    g = tensor(to_layout(arrays[3], layout)).detach()
    first = torch.autograd.grad(run(q, k, v), (q, k, v), g, create_graph=True)
    for found, want in zip(first, expected[3](arrays[3]), strict=False):
        np.testing.assert_allclose(found.detach().numpy(), to_layout(want, layout), atol=1e-9)
    total = sum((x * x).sum() for x in first)
    second = torch.autograd.grad(total, (q, k, v))
    for x, found in zip((q, k, v), second, strict=True):
        flat, step = x.detach().reshape(-1), 1e-5
        for at in (0, flat.numel() - 1):
            values = []
            for sign in (1, -1):
                moved = flat.clone()
                moved[at] += sign * step
                parts = [moved.reshape(x.shape).requires_grad_() if y is x else y for y in (q, k, v)]
                again = torch.autograd.grad(run(*parts), parts, g)
                values.append(float(sum((p * p).sum() for p in again)))
            assert abs((values[0] - values[1]) / (2 * step) - float(found.reshape(-1)[at])) < 1e-5


@pytest.mark.parametrize("lengths", [[3], [3, 2], [2, 3, 1]])
def test_bias_of_each_packed_sequence(lengths):
    """With pse_type 0, a compressed ALiBi belongs to each sequence, or one to all of them."""
    n, rows = 2, 1024
    r = np.random.default_rng(5)
    parts = [made(40 + i, 1, n, n, size, size, 4) for i, size in enumerate(lengths)]
    q, k, v = (torch.tensor(np.concatenate([to_layout(p[i], "TND") for p in parts])) for i in range(3))
    ends = np.cumsum(lengths).tolist()
    keys = max(lengths)
    for count in {1, len(lengths)}:
        slopes = r.random((count, n, 1, 1))
        distance = -np.abs(np.arange(rows)[:, None] + keys - rows - np.arange(keys)).astype(np.float64)
        pse = torch.tensor(distance * slopes)
        out = npu_fusion_attention_v2(
            q, k, v, n, "TND", scale=0.5, pse=pse, pse_type=0, atten_mask=TRIANGLE, sparse_mode=3,
            actual_seq_qlen=ends, actual_seq_kvlen=ends,
        )[0]  # fmt: skip
        want = []
        for i, (size, part) in enumerate(zip(lengths, parts, strict=True)):
            own = -np.abs(np.arange(size)[:, None] - np.arange(size)) * slopes[i if count > 1 else 0]
            hide = np.triu(np.ones((size, size), bool), 1)
            want.append(to_layout(reference.attention(*part[:3], hide, 0.5, 0.0, own)[0], "TND"))
        np.testing.assert_allclose(out.numpy(), np.concatenate(want), atol=1e-9)


def test_refusals():
    q, k, v = (torch.zeros(2, 4, 6, 8) for _ in range(3))
    odd = TRIANGLE.clone()
    odd[5, 0] = True
    wrong = [
        ({"atten_mask": torch.zeros(6, 6)}, "atten_mask must be bool or uint8"),
        ({"atten_mask": torch.zeros(6, dtype=torch.bool)}, "must have one of the shapes"),
        ({"atten_mask": torch.zeros(2, 6, 6, dtype=torch.bool)}, "must have one of the shapes"),
        ({"sparse_mode": 9, "atten_mask": TRIANGLE}, "from 0 to 8"),
        (
            {"sparse_mode": 3, "atten_mask": torch.zeros(6, 6, dtype=torch.bool)},
            "compressed atten_mask of shape",
        ),
        ({"sparse_mode": 2, "atten_mask": ~TRIANGLE}, "must be true above the diagonal"),
        ({"sparse_mode": 2, "atten_mask": odd}, "must be true above the diagonal"),
        *(
            ({"sparse_mode": 6, "atten_mask": other, "prefix": [1, 2]}, "must be true above the diagonal")
            for other in wrong_prefix_masks()
        ),
        ({"sparse_mode": 7, "atten_mask": TRIANGLE}, "needs input_layout TND"),
        ({"sparse_mode": 6, "atten_mask": prefix_mask()}, "needs prefix"),
        ({"sparse_mode": 6, "atten_mask": TRIANGLE, "prefix": [1, 2]}, r"\[3072, 2048\]"),
        ({"keep_prob": 0.0}, "keep_prob"),
        ({"pse": torch.zeros(2, 4, 6, 6, dtype=torch.float64)}, "dtype of query"),
        ({"pse": torch.zeros(6, 6)}, "does not fit"),
        ({"pse_type": 2}, "slope of each head"),
        ({"pse_type": 4}, "pse_type must be"),
    ]
    for arguments, text in wrong:
        with pytest.raises(RuntimeError, match=text):
            npu_fusion_attention_v2(q, k, v, 4, "BNSD", **arguments)
    with pytest.raises(NotImplementedError, match="padding_mask"):
        npu_fusion_attention(q, k, v, 4, "BNSD", padding_mask=TRIANGLE)
    for shapes, heads, layout, text in [
        ((q, k, v), 4, "BHSD", "input_layout must be one of"),
        ((q, k, v), 2, "BNSD", "head_num 2"),
        ((q, k[:, :3], v[:, :3]), 4, "BNSD", "multiple"),
        ((q, k, v.double()), 4, "BNSD", "one floating point dtype"),
        ((q[0], k[0], v[0]), 4, "BNSD", "must have 4 dimensions"),
        ((q[:1], k, v), 4, "BNSD", "batch sizes"),
        ((q[0], k[0], v[0]), 6, "TND", "needs actual_seq_qlen"),
        ((q[0], k[0], v[0]), 3, "BSH", "does not divide"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            npu_fusion_attention(*shapes, heads, layout)
    for ends in ([3, 2], [9], [], [-1, 4]):
        with pytest.raises(RuntimeError, match="in ascending order"):
            npu_fusion_attention(
                q[0], k[0], v[0], 6, "TND", actual_seq_qlen=ends, actual_seq_kvlen=[4] * len(ends)
            )


def test_the_good_compressed_mask_is_looked_at_once_and_again_when_changed():
    mask = TRIANGLE.clone()
    q = torch.zeros(1, 1, 2, 4)
    npu_fusion_attention(q, q, q, 1, "BNSD", atten_mask=mask, sparse_mode=2)
    mask[0, 1] = False
    with pytest.raises(RuntimeError, match="above the diagonal"):
        npu_fusion_attention(q, q, q, 1, "BNSD", atten_mask=mask, sparse_mode=2)


def test_a_compressed_mask_made_in_inference_mode_is_checked_each_time():
    """It has no version that would tell of a change."""
    with torch.inference_mode():
        mask = torch.ones(2048, 2048, dtype=torch.bool).triu(1)
        q = torch.tensor(np.arange(8.0).reshape(1, 1, 2, 4))
        out = npu_fusion_attention(q, q, q, 1, "BNSD", atten_mask=mask, sparse_mode=2)[0]
        np.testing.assert_array_equal(out[0, 0, 0].numpy(), q[0, 0, 0].numpy())
        mask[0, 1] = False
        with pytest.raises(RuntimeError, match="above the diagonal"):
            npu_fusion_attention(q, q, q, 1, "BNSD", atten_mask=mask, sparse_mode=2)


def test_layouts_agree_with_one_another():
    arrays = made(19, 2, 4, 2, 5, 5, 4)
    results = []
    for layout, dtype in itertools.product(["BSH", "SBH", "BSND", "BNSD"], [torch.float32]):
        q, k, v = (torch.tensor(np.ascontiguousarray(to_layout(x, layout))).to(dtype) for x in arrays[:3])
        out = npu_fusion_attention(q, k, v, 4, layout)[0]
        results.append(out.numpy())
    for layout, out in zip(["BSH", "SBH", "BSND"], results[:3], strict=True):
        np.testing.assert_array_equal(out, to_layout(results[3], layout))


def test_attention_of_inference():
    q, k, v, _ = made(20, 2, 4, 2, 5, 5, 4)
    arrays = [torch.tensor(np.ascontiguousarray(to_layout(x, "BSH"))) for x in (q, k, v)]
    bias = np.random.default_rng(1).standard_normal((2, 4, 5, 5))
    expected = reference.attention(q, k, v, np.triu(np.ones((5, 5), bool), 1), 0.5, 0.0, bias)
    call = {"num_heads": 4, "scale_value": 0.5, "pse_shift": torch.tensor(bias)}
    out = npu_prompt_flash_attention(*arrays, sparse_mode=2, atten_mask=TRIANGLE, **call)
    np.testing.assert_allclose(out.numpy(), to_layout(expected[0], "BSH"), atol=1e-9)
    expected = reference.attention(q, k, v, np.zeros((5, 5), bool), 0.5)
    np.testing.assert_allclose(
        npu_prompt_flash_attention(*arrays, num_heads=4, scale_value=0.5).numpy(),
        to_layout(expected[0], "BSH"),
        atol=1e-9,
    )
    lengths = np.array([3, 5])
    behind = np.broadcast_to(np.arange(5) >= lengths[:, None, None, None], (2, 1, 5, 5))
    expected = reference.attention(q, k, v, behind, 0.5)
    out = npu_prompt_flash_attention(*arrays, num_heads=4, scale_value=0.5, actual_seq_lengths_kv=[3, 5])
    np.testing.assert_allclose(out.numpy(), to_layout(expected[0], "BSH"), atol=1e-9)
    one = arrays[0][:, :1]
    out = npu_incre_flash_attention(one, *arrays[1:], num_heads=4, scale_value=0.5, actual_seq_lengths=[3, 5])
    np.testing.assert_allclose(out.numpy(), to_layout(expected[0], "BSH")[:, :1], atol=1e-9)
    hide = torch.tensor(behind[:, 0, 0].copy())
    same = npu_incre_flash_attention(one, *arrays[1:], num_heads=4, scale_value=0.5, atten_mask=hide)
    assert torch.equal(out, same)
    with pytest.raises(NotImplementedError, match="quant_scale1"):
        npu_prompt_flash_attention(*arrays, num_heads=4, quant_scale1=one)
