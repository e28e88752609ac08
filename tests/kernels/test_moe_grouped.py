"""Experts, grouped products and optimizer steps against plain loops in float64."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msadapter as torch
from kernels_ascend import grouped
from msadapter import torch_npu


def random(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def leaf(x):
    return torch.tensor(np.ascontiguousarray(x)).requires_grad_()


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 7), st.integers(1, 3), st.integers(1, 5), st.integers(0, 6), st.integers(0, 99))
def test_permute_and_back(tokens, topk, experts, dropped, seed):
    r = np.random.default_rng(seed)
    x, probs = r.standard_normal((tokens, 3)), r.random((tokens, topk))
    indices = r.integers(0, experts, (tokens, topk))
    rows = max(1, tokens * topk - dropped)
    order = sorted(range(tokens * topk), key=lambda i: (indices.ravel()[i], i))
    place = {copy: row for row, copy in enumerate(order)}

    tx, tp = leaf(x), leaf(probs)
    permuted, sorted_indices = torch_npu.npu_moe_token_permute(tx, torch.tensor(indices), rows)
    assert sorted_indices.dtype == torch.int32
    assert sorted_indices.tolist() == [place[i] for i in range(tokens * topk)]
    np.testing.assert_array_equal(permuted.detach().numpy(), x[[c // topk for c in order[:rows]]])

    back = torch_npu.npu_moe_token_unpermute(permuted * 2, sorted_indices, tp)
    kept = np.array([[place[t * topk + k] < rows for k in range(topk)] for t in range(tokens)])
    np.testing.assert_allclose(back.detach().numpy(), 2 * x * (probs * kept).sum(1, keepdims=True))
    g = r.standard_normal(x.shape)
    back.backward(torch.tensor(g))
    np.testing.assert_allclose(tx.grad.numpy(), 2 * g * (probs * kept).sum(1, keepdims=True))
    np.testing.assert_allclose(tp.grad.numpy(), 2 * kept * (g * x).sum(1, keepdims=True), atol=1e-12)


def test_permute_of_one_expert_a_token_and_second_derivatives():
    x = leaf(random(1, 4, 2))
    indices = torch.tensor([2, 0, 1, 0])
    permuted, places = torch_npu.npu_moe_token_permute(x, indices)
    assert places.tolist() == [3, 0, 2, 1]
    assert torch.equal(torch_npu.npu_moe_token_unpermute(permuted, places), x)
    assert torch_npu.npu_moe_token_permute(x, indices, -1)[0].shape == (3, 2)
    probs = leaf(random(2, 2, 2))

    def both(x, probs):
        permuted, places = torch_npu.npu_moe_token_permute(x, torch.tensor([[1, 0], [0, 1]]))
        return torch_npu.npu_moe_token_unpermute(permuted**2, places, probs)

    assert torch.autograd.gradcheck(both, (leaf(random(1, 2, 3)), probs))
    assert torch.autograd.gradgradcheck(both, (leaf(random(1, 2, 3)), probs))


def test_permute_refuses():
    x = torch.zeros(4, 2)
    with pytest.raises(RuntimeError, match="padded_mode"):
        torch_npu.npu_moe_token_permute(x, torch.zeros(4, dtype=torch.int64), None, True)
    with pytest.raises(RuntimeError, match="npu_moe_token_permute"):
        torch_npu.npu_moe_token_permute(x, torch.zeros(3, dtype=torch.int64))
    with pytest.raises(RuntimeError, match="probs"):
        torch_npu.npu_moe_token_unpermute(x, torch.zeros(4, dtype=torch.int32), torch.zeros(3, 1))


@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("with_probs", [False, True])
def test_routing_map(pad, with_probs):
    """Compares the permutation, its inverse and both gradients with products with 0-1 matrices."""
    r = np.random.default_rng(3)
    tokens, experts, hidden, topk = 6, 4, 3, 2
    chosen = np.zeros((tokens, experts), bool)
    for row in chosen:
        row[r.choice(experts, topk, replace=False)] = True
    x, p = r.standard_normal((tokens, hidden)), r.random((tokens, experts))
    capacity = 4
    rows = []  # (expert, token) of each permuted row
    for e in range(experts):
        own = [t for t in range(tokens) if chosen[t, e]]
        others = [t for t in range(tokens) if not chosen[t, e]]
        rows += [(e, t) for t in ((own + others)[:capacity] if pad else own)]
    take = np.zeros((len(rows), tokens))
    take[range(len(rows)), [t for _, t in rows]] = 1
    weight = np.array([p[t, e] for e, t in rows]) if with_probs else np.ones(len(rows))

    tx, tp, tm = torch.tensor(x), torch.tensor(p), torch.tensor(chosen)
    probs = tp if with_probs else None
    many = capacity * experts if pad else tokens * topk
    permuted, pp, places = torch_npu.npu_moe_token_permute_with_routing_map(
        tx, tm, probs=probs, num_out_tokens=many, drop_and_pad=pad
    )
    np.testing.assert_allclose(permuted.numpy(), take @ x)
    assert places.dtype == torch.int32
    if with_probs:
        np.testing.assert_allclose(pp.numpy(), weight)
    else:
        assert pp is None
    y, gp = r.standard_normal((len(rows), hidden)), r.standard_normal(len(rows))
    gx, gprobs = torch_npu.npu_moe_token_permute_with_routing_map_grad(
        torch.tensor(y), torch.tensor(gp) if with_probs else None, places, tm, experts, tokens, pad
    )
    np.testing.assert_allclose(gx.numpy(), take.T @ y)
    spread = np.zeros((tokens, experts))
    for (e, t), value in zip(rows, gp, strict=True):
        spread[t, e] = value
    assert gprobs is None or np.allclose(gprobs.numpy(), spread)

    out, index, ids, _ = torch_npu._npu_moe_token_unpermute_with_routing_map(
        torch.tensor(y), places, torch.Size([tokens, hidden]), probs=probs, routing_map=tm, drop_and_pad=pad
    )
    np.testing.assert_allclose(out.numpy(), take.T @ (weight[:, None] * y))
    g = r.standard_normal((tokens, hidden))
    pair = (index, ids) if pad else (places, places)
    gy, gprobs = torch_npu.npu_moe_token_unpermute_with_routing_map_grad(
        torch.tensor(g),
        *pair,
        routing_map=tm,
        permuted_tokens=torch.tensor(y),
        probs=probs,
        drop_and_pad=pad,
        restore_shape=[tokens, hidden],
    )
    np.testing.assert_allclose(gy.numpy(), weight[:, None] * (take @ g))
    if with_probs:
        spread = np.zeros((tokens, experts))
        for i, (e, t) in enumerate(rows):
            spread[t, e] = g[t] @ y[i]
        np.testing.assert_allclose(gprobs.numpy(), spread, atol=1e-12)
    else:
        assert gprobs is None


def test_unpermute_without_a_map_needs_no_probabilities():
    x, chosen = (
        torch.tensor(random(1, 3, 2)),
        torch.tensor([[True, False, True], [True, True, False], [False, True, True]]),
    )
    permuted, _, places = torch_npu.npu_moe_token_permute_with_routing_map(x, chosen)
    assert torch.allclose(torch_npu.npu_moe_token_unpermute_with_routing_map(permuted, places, [3, 2]), 2 * x)


def test_routing_of_inference():
    x = torch.tensor([[0.1, 0.9, 0.3], [0.7, 0.2, 0.6], [0.5, 0.4, 0.8]])
    values, experts, rows = torch_npu.npu_moe_gating_top_k_softmax(x, torch.tensor([False, True, False]), 2)
    assert experts.tolist() == [[1, 2], [3, 3], [2, 0]]
    assert rows.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert torch.allclose(values, torch.softmax(x, -1).topk(2, -1)[0])
    _, experts, rows = torch_npu.npu_moe_gating_top_k_softmax(x, k=2)
    tokens = torch.tensor(random(2, 3, 4))
    expanded, places, order = torch_npu.npu_moe_init_routing(tokens, rows, experts, 3)
    assert order.tolist() == sorted(experts.flatten().tolist())
    ends = torch_npu.npu_moe_compute_expert_tokens(order, 3)
    assert ends.tolist() == [2, 3, 6]
    bias, skip = torch.tensor(random(4, 3, 4)), torch.tensor(random(5, 3, 4))
    scales = values.double()
    out = torch_npu.npu_moe_finalize_routing(expanded * 2, skip, None, bias, scales, places, experts)
    want = skip.clone()
    for token in range(3):
        for k in range(2):
            want[token] += scales[token, k] * (2 * tokens[token] + bias[experts[token, k].item()])
    assert torch.allclose(out, want)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize("split", [0, 2, 3])
@pytest.mark.parametrize("one_weight", [False, True])
def test_grouped_rows(kind, as_list, split, one_weight):
    x, w, b = random(1, 7, 3), random(2, 3, 3, 4), random(3, 3, 4)
    sizes = [2, 0, 4]
    numbers = sizes if kind else np.cumsum(sizes).tolist()
    weights = [leaf(w)] if one_weight else [leaf(one) for one in w]
    tx = leaf(x)
    found = torch_npu.npu_grouped_matmul(
        [tx],
        weights,
        bias=[torch.tensor(one) for one in b],
        group_list=numbers if as_list else torch.tensor(numbers),
        split_item=split,
        group_type=0,
        group_list_type=kind,
    )
    ends = np.cumsum([0, *sizes])
    want = [x[i:j] @ w[e] + b[e] for e, (i, j) in enumerate(zip(ends, ends[1:], strict=False))]
    if split == 0:
        assert len(found) == 3
        for mine, theirs in zip(found, want, strict=True):
            np.testing.assert_allclose(mine.detach().numpy(), theirs)
    else:
        np.testing.assert_allclose(found[0].detach().numpy(), np.concatenate([*want, np.zeros((1, 4))]))
    torch.cat(list(found))[:6].sum().backward()
    np.testing.assert_allclose(tx.grad.numpy()[6], 0)
    np.testing.assert_allclose(tx.grad.numpy()[:2], np.broadcast_to(w[0].sum(1), (2, 3)))


def test_grouped_inner_and_ungrouped():
    x, w = random(1, 3, 6), random(2, 6, 4)
    found = torch_npu.npu_grouped_matmul(
        [torch.tensor(x)], [torch.tensor(w)], group_list=[2, 6], split_item=3, group_type=2
    )
    np.testing.assert_allclose(found[0].numpy(), np.stack([x[:, :2] @ w[:2], x[:, 2:] @ w[2:]]))
    found = torch_npu.npu_grouped_matmul(
        [torch.tensor(x), torch.tensor(x)], [torch.tensor(w), torch.tensor(w * 2)]
    )
    np.testing.assert_allclose(found[1].numpy(), x @ w * 2)
    found = torch_npu.npu_grouped_matmul([torch.tensor(x)], [torch.tensor(w)], act_type=1)
    np.testing.assert_allclose(found[0].numpy(), np.maximum(x @ w, 0))


def test_grouped_refuses():
    x, w = [torch.zeros(4, 2)], [torch.zeros(2, 2, 3)]
    for arguments, text in [
        ({"group_type": 0}, "needs group_list"),
        ({"group_type": 0, "group_list": [3, 2]}, "must divide"),
        ({"group_type": 0, "group_list": [3, 5]}, "must divide"),
        ({"group_type": 0, "group_list": [4]}, "one weight and one bias"),
        ({"group_type": 1}, "group_type must be"),
        ({"split_item": 4}, "split_item"),
    ]:
        with pytest.raises(RuntimeError, match=text):
            torch_npu.npu_grouped_matmul(x, w, **arguments)
    with pytest.raises(NotImplementedError, match="int8 results"):
        torch_npu.npu_grouped_matmul(x, w, offset=[torch.zeros(2)])
    with pytest.raises(RuntimeError, match="quantized operands need group_type 0"):
        torch_npu.npu_grouped_matmul(x, w, scale=[torch.zeros(2)])
    with pytest.raises(RuntimeError, match="takes no bias"):
        torch_npu.npu_grouped_matmul(x, x, bias=x, group_list=[4], group_type=2)


def test_products_added_to_a_gradient():
    x, dy, grad = random(1, 5, 3), random(2, 5, 4), random(3, 4, 3).astype(np.float32)
    main = torch.tensor(grad)
    assert torch_npu.npu_matmul_add_fp32(torch.tensor(x).float(), torch.tensor(dy).float(), main) is None
    np.testing.assert_allclose(main.numpy(), grad + dy.T @ x, atol=1e-5)
    before = main.clone()
    torch_npu.npu_matmul_add_fp32(torch.zeros(0, 3), torch.zeros(0, 4), main)
    assert torch.equal(main, before)
    grad = random(4, 2, 3, 4).astype(np.float32)
    main = torch.tensor(grad.reshape(6, 4))
    torch_npu.npu_groupmatmul_add_fp32(
        torch.tensor(x).bfloat16(), torch.tensor(dy).bfloat16(), torch.tensor([2, 5]), main
    )
    want = grad + np.stack([x[:2].T @ dy[:2], x[2:].T @ dy[2:]])
    np.testing.assert_allclose(main.numpy().reshape(2, 3, 4), want, atol=0.1)


@pytest.mark.parametrize("wrong", [{"transpose_x": False}, {"transpose_weight": True}, {"group_type": 0}])
def test_what_the_device_does_not_add_is_refused(wrong):
    main = torch.zeros(1, 3, 4)
    with pytest.raises(
        RuntimeError, match="transpose_x must be True, transpose_weight False and group_type 2"
    ):
        torch_npu.npu_grouped_matmul_add_(
            main, torch.ones(5, 3), torch.ones(5, 4), torch.tensor([5]), **wrong
        )
    assert not main.any()


@pytest.mark.parametrize("kind", [0, 1])
def test_gmm_and_its_backward(kind):
    x, w, g = random(1, 6, 3), random(2, 2, 3, 4), random(3, 6, 4)
    sizes = torch.tensor([2, 4] if kind else [2, 6])
    tx, tw, tg = (torch.tensor(a) for a in (x, w, g))
    np.testing.assert_allclose(
        grouped.gmm([tx], [tw], [], sizes, 0, kind)[0].numpy(), np.concatenate([x[:2] @ w[0], x[2:] @ w[1]])
    )
    dx, dw, db = grouped.gmm_backward([tg], [tx], [tw], sizes, kind)
    np.testing.assert_allclose(dx[0].numpy(), np.concatenate([g[:2] @ w[0].T, g[2:] @ w[1].T]))
    np.testing.assert_allclose(dw[0].numpy(), np.stack([x[:2].T @ g[:2], x[2:].T @ g[2:]]))
    assert db == []
    assert torch.equal(grouped.gmm_backward_fusion([tg], [tw], sizes, kind)[0][0], dx[0])


@pytest.mark.parametrize("kind", [0, 1])
def test_a_list_of_groups_holds_ends_whatever_its_kind(kind):
    """MindSpeed's overload for lists ignores group_list_type. Its all-gather overlap passes 1 although the list has ends."""
    x, w, g = (torch.tensor(a) for a in (random(1, 6, 3), random(2, 2, 3, 4), random(3, 6, 4)))
    assert torch.equal(
        grouped.gmm([x], [w], [], [2, 6], 0, kind)[0],
        grouped.gmm([x], [w], [], torch.tensor([2, 6]), 0, 0)[0],
    )
    got, want = (
        grouped.gmm_backward([g], [x], [w], *rest) for rest in (([2, 6], kind), (torch.tensor([2, 6]), 0))
    )
    assert torch.equal(got[0][0], want[0][0]) and torch.equal(got[1][0], want[1][0])


@pytest.mark.parametrize("amsgrad", [False, True])
@pytest.mark.parametrize("maximize", [False, True])
def test_adamw_is_the_optimizer_of_torch(amsgrad, maximize):
    p = torch.tensor(random(1, 5))
    mine, states = p.clone(), [torch.zeros(5, dtype=torch.float64) for _ in range(3)]
    other, more = p.clone(), [torch.zeros(5, dtype=torch.float64) for _ in range(3)]
    theirs = p.clone().requires_grad_()
    options = {
        "lr": 0.1,
        "betas": (0.8, 0.9),
        "eps": 1e-3,
        "weight_decay": 0.2,
        "amsgrad": amsgrad,
        "maximize": maximize,
    }
    optimizer = torch.optim.AdamW([theirs], **options)
    for step in range(1, 4):
        g = torch.tensor(random(10 + step, 5))
        theirs.grad = g
        optimizer.step()
        torch_npu.npu_apply_fused_adamw_v2(
            mine, g, *states, torch.tensor([float(step)]), 0.1, 0.8, 0.9, 0.2, 1e-3, amsgrad, maximize
        )
        torch_npu.npu_apply_adam_w(
            0.8 ** (step - 1),
            0.9 ** (step - 1),
            0.1,
            0.2,
            0.8,
            0.9,
            1e-3,
            g,
            more[2] if amsgrad else None,
            amsgrad,
            maximize,
            out=(other, *more[:2]),
        )
        np.testing.assert_allclose(mine.numpy(), theirs.detach().numpy(), rtol=1e-12)
        np.testing.assert_allclose(other.numpy(), theirs.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("correct", [False, True])
def test_ema_adamw(mode, correct):
    g, var, m, s = (random(i, 4) for i in range(4))
    v = random(5, 4) ** 2
    tensors = [torch.tensor(a.copy()) for a in (g, var, m, v, s)]
    found = torch_npu.npu_apply_fused_ema_adamw(
        *tensors, torch.tensor([3]), 0.1, 0.9, 0.7, 0.8, 1e-4, mode, correct, 0.3
    )
    g = g + 0.3 * var * (1 - mode)
    m, v = 0.7 * m + 0.3 * g, 0.8 * v + 0.2 * g * g
    a, b = (1 - 0.7**3, 1 - 0.8**3) if correct else (1, 1)
    var = var - 0.1 * (m / a / (np.sqrt(v / b) + 1e-4) + 0.3 * var * mode)
    for mine, theirs in zip(found, (var, m, v, 0.9 * s + 0.1 * var), strict=True):
        np.testing.assert_allclose(mine.numpy(), theirs)
    assert found[0] is tensors[1]
    with pytest.raises(RuntimeError, match="mode"):
        torch_npu.npu_apply_fused_ema_adamw(*tensors, torch.tensor([3]), mode=2)


@pytest.mark.parametrize("tokens, topk, hidden", [(3, 2, 5), (5, 3, 2), (4, 1, 4), (2, 4, 7)])
def test_unpermute_without_a_map_differentiates_to_its_gradient(tokens, topk, hidden):
    """The places are those of token after token, so that sizes that differ show which one counts the tokens."""
    r = np.random.default_rng(tokens)
    places = torch.tensor(r.permutation(tokens * topk)).to(torch.int32)
    y = torch.tensor(r.standard_normal((tokens * topk, hidden)), requires_grad=True)
    out = torch_npu.npu_moe_token_unpermute_with_routing_map(y, places, [tokens, hidden])
    for token in range(tokens):
        own = places[token * topk : (token + 1) * topk].long()
        torch.testing.assert_close(out[token], y[own].sum(0))
    g = torch.tensor(r.standard_normal((tokens, hidden)))
    found, of_probs = torch_npu.npu_moe_token_unpermute_with_routing_map_grad(g, places, places)
    torch.testing.assert_close(found, torch.autograd.grad(out, y, g)[0])
    assert of_probs is None
