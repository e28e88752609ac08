"""flash_attn's functions give the values of scaled_dot_product_attention, with keys and values in one piece and in pages."""

import os
import subprocess
import sys

import pytest

import msadapter as torch
from msadapter import flash_attn

CLOSE = {"rtol": 1e-5, "atol": 1e-6}


def _plain(q, k, v, causal=False, window=(-1, -1)):
    """Attention of (s, h, d) over (t, g, d), whose masks count from the last key."""
    ahead = torch.arange(k.shape[0]) - torch.arange(q.shape[0]).unsqueeze(1) - (k.shape[0] - q.shape[0])
    seen = torch.ones_like(ahead, dtype=torch.bool)
    if causal:
        seen &= ahead <= 0
    if window[0] >= 0:
        seen &= -ahead <= window[0]
    heads = [x.transpose(0, 1).unsqueeze(0) for x in (q, k, v)]
    out = torch.nn.functional.scaled_dot_product_attention(*heads, attn_mask=seen, enable_gqa=True)
    return out.squeeze(0).transpose(0, 1)


@pytest.fixture
def drawn():
    torch.manual_seed(3)
    return lambda *shape: torch.randn(*shape)


@pytest.mark.parametrize("causal, window", [(False, (-1, -1)), (True, (-1, -1)), (True, (3, 0))])
@pytest.mark.parametrize("keys", [7, 12])
def test_sequences_of_one_length(drawn, causal, window, keys):
    q, k, v = drawn(2, 7, 4, 8), drawn(2, keys, 2, 8), drawn(2, keys, 2, 8)
    out, logs, none = flash_attn.flash_attn_func(
        q, k, v, causal=causal, window_size=window, return_attn_probs=True
    )
    expected = torch.stack([_plain(*one, causal, window) for one in zip(q, k, v, strict=True)])
    torch.testing.assert_close(out, expected, **CLOSE)
    assert logs.shape == (2, 4, 7) and none is None


def test_the_logarithms_are_those_of_the_sums(drawn):
    q, k, v = drawn(1, 3, 2, 4), drawn(1, 5, 2, 4), drawn(1, 5, 2, 4)
    _, logs, _ = flash_attn.flash_attn_func(q, k, v, softmax_scale=0.5, return_attn_probs=True)
    scores = torch.einsum("bshd,bthd->bhst", q, k) * 0.5
    torch.testing.assert_close(logs, scores.exp().sum(-1).log(), **CLOSE)


def _pages(parts, size, free=3):
    """Sequences in pages of a shuffled pool, and the table of their pages."""
    order = torch.randperm(free + sum(-(-len(part) // size) for part in parts)).tolist()
    pool = torch.randn(len(order), size, *parts[0].shape[1:])
    table = torch.zeros(len(parts), max(-(-len(part) // size) for part in parts), dtype=torch.int32)
    for i, part in enumerate(parts):
        for j, begin in enumerate(range(0, len(part), size)):
            page = order.pop()
            pool[page, : len(part[begin : begin + size])] = part[begin : begin + size]
            table[i, j] = page
    return pool, table


def _several(drawn):
    """Lengths of queries and keys, and these as sequences."""
    queries, keys = (4, 1, 6), (4, 9, 11)
    parts = [(drawn(s, 4, 8), drawn(t, 2, 8), drawn(t, 2, 8)) for s, t in zip(queries, keys, strict=True)]
    ends = [torch.tensor([0, *x], dtype=torch.int32).cumsum(0) for x in (queries, keys)]
    return parts, ends


def test_sequences_of_several_lengths(drawn):
    parts, (ends_q, ends_k) = _several(drawn)
    expected = torch.cat([_plain(*part, causal=True) for part in parts])
    q, k, v = (torch.cat([part[i] for part in parts]) for i in range(3))
    more = torch.cat((q, drawn(2, 4, 8)))  # two tokens that belong to no sequence
    out = flash_attn.flash_attn_varlen_func(more, k, v, ends_q, ends_k, 6, 11, causal=True)
    torch.testing.assert_close(out[:-2], expected, **CLOSE)
    assert not out[-2:].any()
    for size in (1, 4, 16):
        (paged_k, table), paged_v = _pages([part[1] for part in parts], size), None
        paged_v = torch.zeros_like(paged_k)
        for i, part in enumerate(parts):
            for j, begin in enumerate(range(0, len(part[2]), size)):
                paged_v[table[i, j], : len(part[2][begin : begin + size])] = part[2][begin : begin + size]
        paged = flash_attn.flash_attn_varlen_func(
            q, paged_k, paged_v, ends_q, ends_k, 6, 11, causal=True, block_table=table
        )
        torch.testing.assert_close(paged, expected, **CLOSE)


def test_a_cache(drawn):
    cache_k, cache_v, q = drawn(3, 10, 2, 8), drawn(3, 10, 2, 8), drawn(3, 2, 4, 8)
    lengths = torch.tensor([2, 7, 10], dtype=torch.int32)
    out, logs = flash_attn.flash_attn_with_kvcache(
        q, cache_k, cache_v, cache_seqlens=lengths, causal=True, return_softmax_lse=True
    )
    for i, length in enumerate(lengths.tolist()):
        torch.testing.assert_close(
            out[i], _plain(q[i], cache_k[i, :length], cache_v[i, :length], True), **CLOSE
        )
    assert logs.shape == (3, 4, 2)
    pool_k, table = _pages([cache_k[i, :length] for i, length in enumerate(lengths.tolist())], 4)
    pool_v = torch.zeros_like(pool_k)
    for i, length in enumerate(lengths.tolist()):
        for j, begin in enumerate(range(0, length, 4)):
            end = min(begin + 4, length)
            pool_v[table[i, j], : end - begin] = cache_v[i, begin:end]
    paged = flash_attn.flash_attn_with_kvcache(
        q, pool_k, pool_v, cache_seqlens=lengths, causal=True, block_table=table
    )
    torch.testing.assert_close(paged, out, **CLOSE)


def test_a_query_that_sees_no_key_gets_zeros(drawn):
    out = flash_attn.flash_attn_func(drawn(1, 3, 1, 4), drawn(1, 2, 1, 4), drawn(1, 2, 1, 4), causal=True)
    assert not out[0, 0].any() and out[0, 1].any()
    empty = torch.zeros(1, dtype=torch.int32)
    out = flash_attn.flash_attn_with_kvcache(
        drawn(1, 1, 1, 4), drawn(1, 2, 1, 4), drawn(1, 2, 1, 4), cache_seqlens=empty
    )
    assert not out.any()


def test_other_arguments_are_refused_by_name(drawn):
    q = drawn(1, 2, 1, 4)
    for name, value in (("dropout_p", 0.1), ("softcap", 2.0), ("alibi_slopes", torch.ones(1))):
        with pytest.raises(NotImplementedError, match=f"flash_attn: {name} is not supported"):
            flash_attn.flash_attn_func(q, q, q, **{name: value})
    with pytest.raises(NotImplementedError, match="flash_attn: k is not supported"):
        flash_attn.flash_attn_with_kvcache(q, q, q, k=q, v=q)


@pytest.mark.parametrize(
    "variables, said", [({}, "No module named 'flash_attn'"), ({"MSADAPTER_FLASH_ATTN": "1"}, "")]
)
def test_the_name_exists_if_it_is_asked_for(variables, said):
    clean = {name: value for name, value in os.environ.items() if name != "MSADAPTER_FLASH_ATTN"}
    code = "import msadapter; msadapter.install(); import flash_attn; print(flash_attn.__version__)"
    done = subprocess.run(
        [sys.executable, "-c", code], env=clean | variables, capture_output=True, text=True, check=False
    )
    assert said in done.stderr and (done.returncode == 0) is bool(variables)
