"""Sparse attention and its indexer: drawn shapes, lengths, layouts and modes against plain formulas in float64, key by key."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import msadapter as torch
from kernels_ascend import sparse_layout
from msadapter import torch_npu
from tests.kernels import reference
from tests.kernels.test_fused_cases import Drawn, dtypes, near, numbers

LOWEST = -3.4028234663852886e38
modes = st.sampled_from([0, 3])


class Batch:
    """The sequences of a drawn call: their lengths, and where their queries and keys are."""

    def __init__(self, data):
        number = lambda low, high: data.draw(st.integers(low, high))  # noqa: E731
        self.layout = data.draw(st.sampled_from(["BSND", "TND"]))
        count = number(1, 3)
        self.lengths = [(number(0, 5), number(0, 6)) for _ in range(count)]
        self.queries, self.keys = (max(1, max(x)) for x in zip(*self.lengths, strict=True))
        if self.layout == "TND":
            q, k = (np.cumsum([x[i] for x in self.lengths]).tolist() for i in (0, 1))
            self.ends = q, k
            self.shapes = (q[-1],), (k[-1],)
            self.places = [
                ((slice(b - m, b),), (slice(d - n, d),))
                for b, d, (m, n) in zip(q, k, self.lengths, strict=True)
            ]
        else:
            self.ends = tuple([x[i] for x in self.lengths] for i in (0, 1))
            self.shapes = (count, self.queries), (count, self.keys)
            self.places = [((b, slice(0, m)), (b, slice(0, n))) for b, (m, n) in enumerate(self.lengths)]
        self.as_tensors = data.draw(st.booleans())

    def given(self) -> list:
        return [torch.tensor(x, dtype=torch.int32) if self.as_tensors else x for x in self.ends]

    def rows(self, mode: int):
        """For each query: (its place, the place of its sequence's keys, the keys that it sees)."""
        for (q, k), (m, n) in zip(self.places, self.lengths, strict=True):
            for i in range(m):
                at = (*q[:-1], q[-1].start + i)
                yield at, k, [j for j in range(n) if mode == 0 or j <= i + n - m]


def score(q, k, w):
    """The indexer's score of one key for one query: q (heads, size), k (size,), w (heads,)."""
    products = q @ k
    return (w * np.where(products.real > 0, products, 0)).sum()


def chosen_keys(data, batch: Batch, count: int, block: int = 1):
    """Drawn blocks of keys for every query: different ones, and -1 for the rest."""
    r = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    found = np.full((*batch.shapes[0], 1, count), -1, np.int32)
    for at, k, _ in batch.rows(0):
        blocks = -(-(k[-1].stop - k[-1].start) // block)
        some = r.permutation(blocks)[: r.integers(0, count + 1)]
        found[at][0, : len(some)] = some
    return found


@pytest.fixture(autouse=True, params=[2**22, 12])
def blocks(request, monkeypatch):
    """All queries at once, and a few at a time."""
    monkeypatch.setattr(sparse_layout, "BLOCK", request.param)


fixture_is_constant = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@settings(fixture_is_constant, max_examples=reference.examples(40), deadline=None)
@given(st.data(), modes, st.integers(1, 3), st.integers(1, 7), dtypes)
def test_choice_of_keys_drawn(data, mode, heads, count, dtype):
    """The chosen keys have the largest scores, in falling order, with their gradients; the rest is -1."""
    batch, make = Batch(data), Drawn(data)
    q, k = make((*batch.shapes[0], heads, 4), dtype), make((*batch.shapes[1], 1, 4), dtype)
    w = make((*batch.shapes[0], heads), dtype)
    lengths = dict(zip(("actual_seq_lengths_query", "actual_seq_lengths_key"), batch.given(), strict=True))
    call = {
        "layout_query": batch.layout,
        "layout_key": batch.layout,
        "sparse_count": count,
        "sparse_mode": mode,
    }
    indices, values = torch_npu.npu_lightning_indexer(q, k, w, return_value=True, **call, **lengths)
    assert tuple(indices.shape) == tuple(values.shape) == (*batch.shapes[0], 1, count)
    assert indices.dtype == torch.int32 and values.dtype == dtype
    alone = torch_npu.npu_lightning_indexer(q, k, w, **call, **lengths)
    assert torch.equal(alone[0], indices) and tuple(alone[1].shape) == (0,)
    arrays, found, got = [numbers(x) for x in (q, k, w)], indices.numpy(), numbers(values)
    wanted = np.full(found.shape, -np.inf)
    for at, keys, seen in batch.rows(mode):
        all_scores = [score(arrays[0][at], arrays[1][keys][j, 0], arrays[2][at]) for j in seen]
        best = sorted(all_scores, reverse=True)[:count]
        mine = found[at][0]
        assert len(set(mine[: len(best)])) == len(best) and set(mine[: len(best)]) <= set(seen)
        assert (mine[len(best) :] == -1).all()
        wanted[at][0, : len(best)] = best
        near(
            torch.tensor([all_scores[seen.index(j)] for j in mine[: len(best)]]).to(dtype),
            np.array(best),
            dtype,
        )
    assert (found[wanted == -np.inf] == -1).all() and (got[wanted == -np.inf] == -np.inf).all()
    finite = wanted > -np.inf
    near(values[torch.tensor(finite)], wanted[finite], dtype)

    def formula(q, k, w):
        out = np.zeros(found.shape, q.dtype)
        for at, keys, _ in batch.rows(mode):
            for place, j in enumerate(found[at][0]):
                if j >= 0:
                    out[at][0, place] = score(q[at], k[keys][j, 0], w[at])
        return (out,)

    back = torch.tensor(np.random.default_rng(3).standard_normal(found.shape)).to(dtype)
    wants = reference.vjp(formula, arrays, [numbers(back)])
    for x, mine, want in zip((q, k, w), torch.autograd.grad(values, (q, k, w), back), wants, strict=True):
        near(mine, want, x.dtype)
    direct = torch_npu.npu_lightning_indexer_grad(
        q, k, back, indices, w, layout=batch.layout, sparse_mode=mode, **lengths
    )
    for x, mine, want in zip((q, k, w), direct, wants, strict=True):
        near(mine, want, x.dtype)


def attended(q, k, v, batch, mode, indices, scale, block):
    """Output, maxima and sums of sparse attention, query by query."""
    out = np.zeros((*batch.shapes[0], q.shape[-2], v.shape[-1]), np.result_type(q, v))
    top = np.full(out.shape[:-1], LOWEST)
    total = np.ones(out.shape[:-1])
    for at, keys, seen in batch.rows(mode):
        tokens = [j for c in indices[at][0] if c >= 0 for j in range(c * block, (c + 1) * block) if j in seen]
        if not tokens:
            continue
        s = q[at] @ k[keys][tokens, 0].T * scale
        top[at] = s.real.max(-1)
        e = np.exp(s - top[at][:, None])
        total[at] = e.real.sum(-1)
        out[at] = e / e.sum(-1, keepdims=True) @ v[keys][tokens, 0]
    return out, top, total


@settings(fixture_is_constant, max_examples=reference.examples(40), deadline=None)
@given(st.data(), modes, st.integers(1, 3), st.integers(1, 4), st.sampled_from([1, 2]), st.booleans(), dtypes)
def test_attention_to_chosen_keys_drawn(data, mode, heads, count, block, with_rope, dtype):
    batch, make = Batch(data), Drawn(data)
    q, k, v = (make((*batch.shapes[i], n, 4), dtype) for i, n in ((0, heads), (1, 1), (1, 1)))
    ropes = [make((*batch.shapes[i], n, 2), dtype) for i, n in ((0, heads), (1, 1))] if with_rope else []
    indices = chosen_keys(data, batch, count, block)
    qlen, klen = batch.given()
    call = {
        "sparse_block_size": block,
        "layout_query": batch.layout,
        "layout_kv": batch.layout,
        "sparse_mode": mode,
        "attention_mode": 2,
        "actual_seq_lengths_query": qlen,
        "actual_seq_lengths_kv": klen,
        "return_softmax_lse": True,
    } | dict(zip(("query_rope", "key_rope"), ropes, strict=False))
    chosen = torch.tensor(indices)
    out, top, total = torch_npu.npu_sparse_flash_attention(q, k, v, chosen, 0.6, **call)
    tensors = [q, k, v, *ropes]
    arrays = [numbers(x) for x in tensors]

    def formula(q, k, v, q_rope=None, k_rope=None):
        if q_rope is not None:
            q, k = np.concatenate([q, q_rope], -1), np.concatenate([k, k_rope], -1)
        return (attended(q, k, v, batch, mode, indices, 0.6, block)[0],)

    joined = [np.concatenate([a, b], -1) for a, b in zip(arrays[:2], arrays[3:], strict=False)] or arrays[:2]
    want, want_top, want_total = attended(*joined, arrays[2], batch, mode, indices, 0.6, block)
    near(out, want, dtype)
    statistics = (*batch.shapes[0][:-1], 1, batch.shapes[0][-1], heads)
    for mine, expected in ((top, want_top), (total, want_total)):
        assert mine.dtype == torch.float32 and tuple(mine.shape) == statistics
        np.testing.assert_allclose(numbers(mine).reshape(expected.shape), expected, rtol=1e-5, atol=1e-5)
    back = torch.tensor(np.random.default_rng(5).standard_normal(want.shape)).to(dtype)
    wants = reference.vjp(formula, arrays, [numbers(back)])
    # A saved output in 16 bits is rounded. The statistics are float32: an error of eps / 2 in the largest product and in
    # the logarithm of the sum changes each weight by that part of it, and the heads add up in the gradient of the keys.
    factor = 40.0
    if dtype == torch.float64:
        single = float(torch.finfo(torch.float32).eps) / float(torch.finfo(dtype).eps)
        factor = heads * (1 + np.abs(want_top[want_top > LOWEST]).max(initial=0.0)) * single
    for x, mine, expected in zip(tensors, torch.autograd.grad(out, tensors, back), wants, strict=True):
        near(mine, expected, x.dtype, factor)
    direct = torch_npu.npu_sparse_flash_attention_grad(
        q, k, v, chosen, back, out, top, total, 0.6, block, actual_seq_qlen=qlen, actual_seq_kvlen=klen, layout=batch.layout,
        sparse_mode=mode, attention_mode=2, **dict(zip(("query_rope", "key_rope"), ropes, strict=False)),
    )  # fmt: skip
    for x, mine, expected in zip(tensors, direct, wants, strict=False):
        near(mine, expected, x.dtype, factor)
    assert with_rope or [tuple(x.shape) for x in direct[3:]] == [(0,), (0,)]


@settings(fixture_is_constant, max_examples=reference.examples(40), deadline=None)
@given(st.data(), st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.booleans())
def test_loss_of_the_indexer_drawn(data, heads, index_heads, count, with_rope):
    """The loss by its definition, and its gradients by complex steps through that definition."""
    batch, make, dtype = Batch(data), Drawn(data), torch.float64
    q, k = (make((*batch.shapes[i], n, 4), dtype, False) for i, n in ((0, heads), (1, 1)))
    ropes = (
        [make((*batch.shapes[i], n, 2), dtype, False) for i, n in ((0, heads), (1, 1))] if with_rope else []
    )
    qi, ki = (make((*batch.shapes[i], n, 3), dtype, False) for i, n in ((0, index_heads), (1, 1)))
    w = make((*batch.shapes[0], index_heads), dtype, False)
    indices = chosen_keys(data, batch, count)
    qlen, klen = batch.given()
    named = dict(zip(("query_rope", "key_rope"), ropes, strict=False))
    _, top, total = torch_npu.npu_sparse_flash_attention(
        q, k, k, torch.tensor(indices), 0.6, attention_mode=2, layout_query=batch.layout, layout_kv=batch.layout,
        actual_seq_lengths_query=qlen, actual_seq_lengths_kv=klen, return_softmax_lse=True, **named,
    )  # fmt: skip
    *gradients, loss = torch_npu.npu_sparse_lightning_indexer_grad_kl_loss(
        q, k, qi, ki, w, torch.tensor(indices), top, total, 0.6, actual_seq_qlen=qlen, actual_seq_klen=klen,
        layout=batch.layout, pre_tokens=65536, next_tokens=65536, **named,
    )  # fmt: skip
    arrays = [numbers(x) for x in (q, k, *ropes)]
    queries, keys = (np.concatenate(arrays[i::2], -1) for i in (0, 1))

    def formula(qi, ki, w):
        found = np.zeros(1, np.result_type(qi))
        for at, place, seen in batch.rows(3):
            tokens = [j for j in indices[at][0] if j in seen]
            if not tokens:
                continue
            s = queries[at] @ keys[place][tokens, 0].T * 0.6
            p = np.exp(s - s.max(-1, keepdims=True))
            p = (p / p.sum(-1, keepdims=True)).sum(0)
            p = p / p.sum()
            scores = np.array([score(qi[at], ki[place][j, 0], w[at]) for j in tokens])
            e = np.exp(scores - scores.real.max())
            found += (p * (np.log(p) - np.log(e / e.sum()))).sum()
        return (found,)

    operands = [numbers(x) for x in (qi, ki, w)]
    assert loss.dtype == torch.float32 and tuple(loss.shape) == (1,)
    np.testing.assert_allclose(numbers(loss), formula(*operands)[0], rtol=1e-5, atol=1e-5)
    for x, mine, want in zip(
        (qi, ki, w), gradients, reference.vjp(formula, operands, [np.ones(1)]), strict=True
    ):
        assert mine.dtype == x.dtype
        np.testing.assert_allclose(
            numbers(mine), want, rtol=0, atol=1e-5 * max(1.0, np.abs(want).max(initial=0))
        )


def test_all_keys_chosen_is_ordinary_attention():
    """With every visible key chosen, sparse attention is attention, and the indexer's keys are all of them."""
    torch.manual_seed(0)
    q, k = torch.randn(2, 6, 4, 8), torch.randn(2, 6, 1, 8)
    indices = torch_npu.npu_lightning_indexer(q, k, torch.rand(2, 6, 4), sparse_count=6)[0]
    assert all(sorted(row[row >= 0].tolist()) == list(range(i + 1)) for i, row in enumerate(indices[0, :, 0]))
    found = torch_npu.npu_sparse_flash_attention(q, k, k, indices, 0.3, attention_mode=2)[0]
    keys = k.expand(2, 6, 4, 8)
    want = torch.nn.functional.scaled_dot_product_attention(
        *(x.transpose(1, 2) for x in (q, keys, keys)), is_causal=True, scale=0.3
    )
    torch.testing.assert_close(found, want.transpose(1, 2))


def _attention(q=(1, 3, 2, 4), k=(1, 3, 1, 4), chosen=(1, 3, 1, 2), rope=None, **options):
    q, k = torch.ones(q), torch.ones(k)
    ropes = {} if rope is None else {"query_rope": torch.ones(rope)}
    return torch_npu.npu_sparse_flash_attention(
        q, k, k, torch.zeros(chosen, dtype=torch.int32), 1.0, **{"attention_mode": 2} | ropes | options
    )


def _indexer(q=(1, 3, 2, 4), k=(1, 3, 1, 4), w=(1, 3, 2), **options):
    return torch_npu.npu_lightning_indexer(torch.ones(q), torch.ones(k), torch.ones(w), **options)


@pytest.mark.parametrize(
    ("run", "error", "words"),
    [
        (lambda: _attention(attention_mode=0), NotImplementedError, "attention_mode must be 2"),
        (lambda: _attention(layout_kv="PA_BSND"), NotImplementedError, r"PA_BSND.*docs/coverage\.md"),
        (lambda: _attention(block_table=torch.zeros(1, 1).int()), NotImplementedError, "block_table, of a cache of pages"),
        (lambda: _attention(layout_query="TND", layout_kv="TND"), RuntimeError, "must have 3 dims"),
        (lambda: _attention(sparse_mode=1), RuntimeError, "sparse_mode must be 0"),
        (lambda: _attention(pre_tokens=5), RuntimeError, "pre_tokens and next_tokens"),
        (lambda: _attention(chosen=(1, 2, 1, 2)), RuntimeError, r"sparse_indices must have the shape \[1, 3, 1, 2\]"),
        (lambda: _attention(k=(1, 3, 2, 4)), RuntimeError, "one head of keys"),
        (lambda: _attention(rope=(1, 3, 2, 2)), RuntimeError, "given together"),
        (lambda: _attention(actual_seq_lengths_kv=[4]), RuntimeError, "1 lengths between 0 and 3"),
        (lambda: _attention(actual_seq_lengths_kv=[1, 1]), RuntimeError, "1 lengths between 0 and 3"),
        (lambda: _indexer(w=(1, 3, 3)), RuntimeError, r"weights must have the shape \[1, 3, 2\]"),
        (lambda: _indexer(k=(2, 3, 1, 4)), RuntimeError, "query has 1 sequences and key has 2"),
        (lambda: _indexer(sparse_count=0), RuntimeError, "sparse_count must be positive"),
        (lambda: _indexer(layout_key="TND"), NotImplementedError, "for queries and keys alike"),
        (
            lambda: _indexer((3, 2, 4), (3, 1, 4), (3, 2), layout_query="TND", layout_key="TND"),
            RuntimeError,
            "needs the lengths",
        ),
        (
            lambda: _indexer(
                (3, 2, 4), (3, 1, 4), (3, 2), layout_query="TND", layout_key="TND",
                actual_seq_lengths_query=[2, 1], actual_seq_lengths_key=[1, 3],
            ),
            RuntimeError,
            "must not decrease",
        ),
    ],
)  # fmt: skip
def test_arguments_that_are_refused(run, error, words):
    with pytest.raises(error, match=words):
        run()


def test_training_without_the_statistics_is_refused():
    """A device needs them for the gradient, so a program that forgets them must not train here alone."""
    q = torch.ones(1, 3, 2, 4, requires_grad=True)
    k, chosen = torch.ones(1, 3, 1, 4), torch.zeros(1, 3, 1, 2, dtype=torch.int32)
    out = torch_npu.npu_sparse_flash_attention(q, k, k, chosen, 1.0, attention_mode=2)[0]
    with pytest.raises(RuntimeError, match="return_softmax_lse=True"):
        out.sum().backward()


def test_what_has_no_derivative_names_itself():
    q, k = torch.ones(1, 3, 2, 4, requires_grad=True), torch.ones(1, 3, 1, 4)
    chosen, w = torch.zeros(1, 3, 1, 2, dtype=torch.int32), torch.ones(1, 3, 2)
    statistics = torch.ones(1, 1, 3, 2)
    calls = {
        "npu_lightning_indexer_grad": lambda: torch_npu.npu_lightning_indexer_grad(
            q, k, torch.ones(1, 3, 1, 2), chosen, w
        ),
        "npu_sparse_flash_attention_grad": lambda: torch_npu.npu_sparse_flash_attention_grad(
            q, k, k, chosen, q, q, statistics, statistics, 1.0, 1, attention_mode=2
        ),
        "npu_sparse_lightning_indexer_grad_kl_loss": lambda: (
            torch_npu.npu_sparse_lightning_indexer_grad_kl_loss(
                q, k, q, k, w, chosen, statistics, statistics, 1.0
            )
        ),
    }
    for name, run in calls.items():
        with pytest.raises(NotImplementedError, match=name):
            run()[0].sum().backward()
