"""npu_fusion_attention, drawn: layouts x sparse modes x masks x biases x dropout x heads x ragged lengths x dtypes x strides.

Each drawn call is compared with tests/kernels/reference.py in float64, one sequence after the other: output, softmax_max,
softmax_sum, the gradients by backward() and those that npu_fusion_attention_grad(_v2) gives when it is called directly.
"""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings

import msadapter as torch
from kernels_ascend import attention_tiles
from msadapter import torch_npu
from tests.kernels import reference
from tests.kernels.attention_draws import PREFIXES, TRIANGLE, Case, cases, joined, rounded, strided


def dropped_factors(case: Case, arrays):
    """The dropout factors of each sequence, which values that are unit vectors show. The random draws equal those of the call."""
    if case.keep == 1:
        return [None] * len(case.lengths)
    longest = max(b for _, b in case.lengths)
    units = [np.broadcast_to(np.eye(b, longest), (1, case.kv, b, longest)) for _, b in case.lengths]
    parts = [
        joined(x, case.layout, case.tail) for x in ([a[0] for a in arrays], [a[1] for a in arrays], units)
    ]
    call = case.arguments()
    if case.pse is not None and case.pse_type < 2:
        call["pse"] = case.pse.double()
    torch.manual_seed(case.seed)
    out = torch_npu.npu_fusion_attention_v2(
        *(torch.tensor(np.ascontiguousarray(x)) for x in parts),
        case.heads,
        case.layout,
        scale=case.scale,
        pre_tokens=case.pre,
        next_tokens=case.following,
        pse_type=case.pse_type,
        q_start_idx=[case.starts[0]],
        kv_start_idx=[case.starts[1]],
        **call,
    )[0].numpy()
    found = []
    for i, (pair, (q, k, _, _), hide, bias) in enumerate(
        zip(case.lengths, arrays, case.hidden, case.bias, strict=True)
    ):
        own = split(out, case, longest)[i][..., : pair[1]]
        plain = reference.attention(
            q, k, np.broadcast_to(np.eye(pair[1]), (1, case.kv, pair[1], pair[1])), hide, case.scale, *bias
        )[0]
        seen = plain > 1e-9
        factors = np.where(seen, own / np.where(seen, plain, 1), 0)
        assert (
            np.isclose(factors[seen], 0, atol=1e-4).sum()
            + np.isclose(factors[seen], 1 / case.keep, rtol=1e-4).sum()
            == seen.sum()
        )
        found.append(np.where(factors > 0.5, 1 / case.keep, 0.0))
    return found


def split(x, case: Case, size: int):
    """The inverse of `joined` for queries: an array (1, N, Sq, size) for each sequence."""
    if case.packed:
        ends = np.cumsum([0] + [a for a, _ in case.lengths])
        return [x[i:j].transpose(1, 0, 2)[None] for i, j in zip(ends, ends[1:], strict=False)]
    order = {"BNSD": (0, 1, 2, 3), "BSND": (0, 2, 1, 3), "BSH": (0, 2, 1, 3), "SBH": (1, 2, 0, 3)}[
        case.layout
    ]
    if case.layout in ("BSH", "SBH"):
        x = x.reshape(*x.shape[:2], case.heads, size)
    x = x.transpose(order)
    return [x[i : i + 1] for i in range(len(x))]


@contextlib.contextmanager
def tiles_of(rows, scores):
    before = attention_tiles.ROWS, attention_tiles.TILE
    attention_tiles.ROWS, attention_tiles.TILE = rows, scores
    try:
        yield
    finally:
        attention_tiles.ROWS, attention_tiles.TILE = before


def near(mine, want, case: Case, more=0.0) -> None:
    """Compares with one rounding of the result. `more` is the error of rounded inputs, such as the saved output in gradients."""
    working = 1e-6 if case.pse_type > 1 else 1e-13  # slopes and distances are float32 in any case
    eps = max(float(torch.finfo(case.dtype).eps), working)
    large = np.abs(want).max(initial=0.0) + more
    np.testing.assert_allclose(mine.detach().double().numpy(), want, rtol=0, atol=eps * (8 * large + 1))


def check_statistics(case: Case, top, total, expected) -> None:
    """Checks softmax_max and softmax_sum: eight equal columns. In packed batches each sequence is stored as (N, S)."""
    assert all((x[..., :1] == x).all() and x.shape[-1] == 8 for x in (top, total))
    assert top.dtype == total.dtype == (torch.float64 if case.dtype == torch.float64 else torch.float32)
    queries = sum(a for a, _ in case.lengths) + case.tail
    shape = (
        (queries, case.heads, 8) if case.packed else (len(case.lengths), case.heads, case.lengths[0][0], 8)
    )
    assert tuple(top.shape) == tuple(total.shape) == shape
    for mine, which in ((top, 1), (total, 2)):
        want = np.concatenate([e[which].ravel() for e in expected])
        empty = ~np.isfinite(np.concatenate([e[1].ravel() for e in expected]))
        have = mine[..., 0].double().numpy().ravel()[: len(want)]
        eps = max(
            float(torch.finfo(case.dtype).eps) if case.dtype == torch.float64 else 1e-7,
            1e-6 if case.pse_type > 1 else 0,
        )
        size = np.abs(want[~empty]).max(initial=1.0)
        np.testing.assert_allclose(have[~empty], want[~empty], rtol=0, atol=64 * eps * size)
        assert (have[empty] == (-3.4028234663852886e38 if which == 1 else 1.0)).all()


def check_rope(case: Case, tensors, g, steps, whole, wants, more) -> None:
    """The same call with the last columns of query and key as separate tensors: by autograd, and by the gradient operator."""
    cut = case.size - case.rope
    q, k, v = (x.detach() for x in tensors)
    parts = [x.clone().requires_grad_() for x in (q[..., :cut], k[..., :cut], v, q[..., cut:], k[..., cut:])]
    call = case.arguments()
    call["pse"] = None if case.pse is None else case.pse.detach()
    torch.manual_seed(case.seed)
    out, top, total, _, seed, *_ = torch_npu.npu_fusion_attention_v2(
        *parts[:3],
        case.heads,
        case.layout,
        scale=case.scale,
        query_rope=parts[3],
        key_rope=parts[4],
        **steps,
        **call,
    )
    near(out, whole.detach().double().numpy(), case)
    out.backward(g)
    for x, w, m in zip(parts, (wants[0][..., :cut], wants[1][..., :cut], wants[2]), more, strict=False):
        near(x.grad, w, case, m)
    near(parts[3].grad, wants[0][..., cut:], case, more[0])
    near(parts[4].grad, wants[1][..., cut:], case, more[1])
    given = [x.detach() for x in parts]
    found = torch_npu.npu_fusion_attention_grad_v2(
        *given[:3],
        g,
        case.heads,
        case.layout,
        softmax_max=top,
        softmax_sum=total,
        attention_in=out.detach(),
        scale_value=case.scale,
        seed=seed,
        query_rope=given[3],
        key_rope=given[4],
        **steps,
        **call,
    )
    for x, leaf in zip((*found[:3], *found[4:]), parts, strict=True):
        assert torch.equal(x, leaf.grad)


@pytest.mark.filterwarnings("ignore:npu_fusion_attention. sparse_mode:UserWarning")
@settings(max_examples=reference.examples(120), deadline=None)
@given(cases())
def test_drawn_calls(drawn):
    case, kinds, tile = drawn
    r = np.random.default_rng(case.seed + 1)
    arrays = [
        [
            rounded(r.standard_normal((1, n, s, d)), case.dtype)
            for n, s, d in (
                (case.heads, a, case.size),
                (case.kv, b, case.size),
                (case.kv, b, case.value_size),
                (case.heads, a, case.value_size),
            )
        ]
        for a, b in case.lengths
    ]
    with tiles_of(*tile):
        factors = dropped_factors(case, arrays)
        expected = [
            reference.attention(*own[:3], hide, case.scale, *bias, keep=keep)
            for own, hide, bias, keep in zip(arrays, case.hidden, case.bias, factors, strict=True)
        ]
        check_call(case, kinds, arrays, expected)


def check_call(case: Case, kinds, arrays, expected) -> None:
    whole = [joined([own[i] for own in arrays], case.layout, case.tail) for i in range(4)]
    q, k, v, g = (strided(x, case.dtype, kind) for x, kind in zip(whole, kinds, strict=True))
    for x in (q, k, v):
        x.requires_grad_()
    learned = (
        case.pse is not None
        and case.pse_type < 2
        and case.pse.shape[2] in (1, case.lengths[0][0])
        and not case.packed
    )
    if learned:
        case.pse.requires_grad_()
    steps = {
        "pre_tokens": case.pre,
        "next_tokens": case.following,
        "pse_type": case.pse_type,
        "q_start_idx": [case.starts[0]],
        "kv_start_idx": [case.starts[1]],
    }
    named = {"pre_tockens": case.pre, "next_tockens": case.following}
    torch.manual_seed(case.seed)
    if case.pse_type == 1:
        found = torch_npu.npu_fusion_attention(
            q, k, v, case.heads, case.layout, scale=case.scale, **named, **case.arguments()
        )
    else:
        found = torch_npu.npu_fusion_attention_v2(
            q, k, v, case.heads, case.layout, scale=case.scale, **steps, **case.arguments()
        )
    out, top, total, empty, seed, offset, numels = found
    assert numels == case.heads * sum(a * b for a, b in case.lengths)
    assert out.dtype == case.dtype and out.is_contiguous() and empty.numel() == 0
    want = joined([e[0] for e in expected], case.layout, case.tail)
    if case.tail:
        want[-case.tail :] = 0
    near(out, want, case)
    check_statistics(case, top, total, expected)

    gradients = [e[3](own[3]) for e, own in zip(expected, arrays, strict=True)]
    wants = [joined([x[i] for x in gradients], case.layout, case.tail) for i in range(3)]
    for x in wants if case.tail else ():
        x[-case.tail :] = 0
    inner = max(
        (np.abs(own[3] * e[0]).sum(-1).max(initial=0.0) for own, e in zip(arrays, expected, strict=True))
    )
    more = [inner * np.abs(whole[1]).max(initial=0), inner * case.group * len(whole[0].ravel()) ** 0.5, 0.0]
    out.backward(g)
    for x, w, m in zip((q, k, v), wants, more, strict=True):
        assert x.grad.dtype == case.dtype
        near(x.grad, w, case, m)
    dpse = None
    if learned:
        dpse = np.concatenate([x[3] for x in gradients]) * (case.scale if case.pse_type else 1.0)
        axes = tuple(i for i, n in enumerate(case.pse.shape) if n == 1)
        dpse = dpse.sum(axes, keepdims=True) if axes else dpse
        near(case.pse.grad, dpse, case, inner * len(case.lengths) * case.lengths[0][0])

    if case.rope:
        check_rope(case, (q, k, v), g, steps, out, wants, more)
    saved = {
        "softmax_max": top,
        "softmax_sum": total,
        "attention_in": out.detach(),
        "scale_value": case.scale,
        "seed": seed,
        "offset": offset,
        "numels": numels,
    }
    call = case.arguments()
    call["pse"] = None if case.pse is None else case.pse.detach()
    if case.pse_type == 1:
        found = torch_npu.npu_fusion_attention_grad(
            q.detach(), k.detach(), v.detach(), g, case.heads, case.layout, **saved, **named, **call
        )
        assert len(found) == 4
    else:
        found = torch_npu.npu_fusion_attention_grad_v2(
            q.detach(), k.detach(), v.detach(), g, case.heads, case.layout, **saved, **steps, **call
        )
    for x, same in zip(found, (q.grad, k.grad, v.grad), strict=False):
        assert torch.equal(x, same)
    assert torch.equal(found[3], case.pse.grad) if learned else found[3].numel() == 0


def leaves(*shape, dtype=torch.float64):
    return [torch.randn(*shape, dtype=dtype).requires_grad_() for _ in range(3)]


def test_what_compressed_rows_leave_open_is_refused():
    """The last rows of ALiBi do not define a bias for keys after the query, or for different numbers of queries and keys."""
    x, y, rows = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4), torch.rand(1, 2, 1024, 3)
    behind = torch.ones(3, 3, dtype=torch.bool).triu(1)
    good = [
        {"atten_mask": TRIANGLE, "sparse_mode": 2},
        {"atten_mask": TRIANGLE, "sparse_mode": 3},
        {"atten_mask": behind},
        {"atten_mask": behind, "sparse_mode": 1},
        {"atten_mask": TRIANGLE, "sparse_mode": 4, "next_tokens": 0},
    ]
    found = [torch_npu.npu_fusion_attention_v2(x, x, x, 2, "BNSD", pse=rows, **one)[0] for one in good]
    assert all(torch.equal(one, found[0]) for one in found)
    for arguments in (
        {},
        {"atten_mask": ~behind, "sparse_mode": 1},
        {"atten_mask": TRIANGLE, "sparse_mode": 4, "next_tokens": 1},
        {"atten_mask": PREFIXES, "sparse_mode": 6, "prefix": [2]},
    ):
        with pytest.raises(RuntimeError, match="keys above the diagonal"):
            torch_npu.npu_fusion_attention_v2(x, x, x, 2, "BNSD", pse=rows, **arguments)
    with pytest.raises(RuntimeError, match="as many keys as queries"):
        wide = torch.rand(1, 2, 1024, 5)
        torch_npu.npu_fusion_attention_v2(x, y, y, 2, "BNSD", pse=wide, atten_mask=TRIANGLE, sparse_mode=3)
    with pytest.raises(RuntimeError, match="3 keys"):
        packed = {"actual_seq_qlen": [4], "actual_seq_kvlen": [4], "atten_mask": TRIANGLE, "sparse_mode": 2}
        z = torch.randn(4, 2, 4)
        torch_npu.npu_fusion_attention_v2(z, z, z, 2, "TND", pse=rows, **packed)


def test_second_derivatives_that_are_missing_raise():
    x = leaves(1, 2, 3, 4)
    out, top, total, *_ = torch_npu.npu_fusion_attention(*x, 2, "BNSD")
    saved = {"softmax_max": top, "softmax_sum": total, "attention_in": out}
    found = torch_npu.npu_fusion_attention_grad(*x, torch.ones_like(out), 2, "BNSD", **saved)
    with pytest.raises(NotImplementedError, match="derivative for npu_fusion_attention_grad"):
        found[0].sum().backward()
    assert all(one.grad is None for one in x)
    dropped = torch_npu.npu_fusion_attention(*x, 2, "BNSD", keep_prob=0.5)[0]
    with pytest.raises(NotImplementedError, match="second derivatives with dropout"):
        torch.autograd.grad(dropped.sum(), x, create_graph=True)
    for pse, kind in ((torch.rand(1, 2, 1024, 3).double(), 1), (torch.rand(2), 2)):
        out = torch_npu.npu_fusion_attention_v2(
            *x, 2, "BNSD", pse=pse.requires_grad_(), pse_type=kind, atten_mask=TRIANGLE, sparse_mode=2
        )[0]
        with pytest.raises(NotImplementedError, match="gradient of a compressed pse"):
            out.sum().backward()


@pytest.mark.parametrize("ends", [([2, 4], [2, 4]), ([2, 2, 5], [2, 3, 5]), ([2, 3, 5], [2, 2, 5])])
def test_second_derivatives_of_packed_sequences(ends):
    """Includes tokens outside of all sequences, and sequences without queries or without keys."""
    x = leaves(5, 2, 2)

    def run(*x):
        return torch_npu.npu_fusion_attention(
            *x, 2, "TND", actual_seq_qlen=ends[0], actual_seq_kvlen=ends[1]
        )[0]

    assert torch.autograd.gradcheck(run, x)
    assert torch.autograd.gradgradcheck(run, x)


@pytest.mark.parametrize("shape", [(0, 2, 3, 4), (1, 2, 0, 4)])
def test_nothing_to_attend_to(shape):
    q, some = torch.randn(1, 2, 3, 4), torch.randn(shape)
    out = torch_npu.npu_fusion_attention(some, some, some, 2, "BNSD")
    assert out[0].shape == shape and out[1].shape == (*shape[:3], 8)
    if shape[0]:
        q.requires_grad_()
        none = some.clone().requires_grad_()
        out = torch_npu.npu_fusion_attention(q, none, none, 2, "BNSD")[0]
        out.sum().backward()
        assert not out.any() and not q.grad.any() and none.grad.shape == shape


def peak_of(run) -> int:
    """The peak of the memory that a call needs in addition, in bytes."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    found = run()
    most = torch.cuda.max_memory_allocated() - before
    del found
    return most


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("layout", ["BSH", "BNSD", "TND"])
def test_memory_grows_with_the_length(layout, causal):
    """Forward and backward, measured by the memory pool: twice the length takes twice the memory, not four times.

    One matrix of scores would take 4 * 4096^2 = 64 MB per head; the whole call stays below half of this.
    """
    call = {"atten_mask": TRIANGLE, "sparse_mode": 2} if causal else {}
    forward, both = [], []
    with tiles_of(256, 1 << 16):
        for n in (2048, 4096):
            shape = {"BSH": (1, n, 8), "BNSD": (1, 2, n, 4), "TND": (n, 2, 4)}[layout]
            ends = (
                {"actual_seq_qlen": [n // 4, n], "actual_seq_kvlen": [n // 4, n]} if layout == "TND" else {}
            )
            x = leaves(*shape, dtype=torch.float32)

            def run(x=x, ends=ends):
                return torch_npu.npu_fusion_attention(*x, 2, layout, scale=0.5, **call, **ends)[0]

            def run_both(run=run):
                run().sum().backward()

            forward.append(peak_of(run))
            both.append(peak_of(run_both))
    for small, large in (forward, both):
        assert 0 < large < 2.2 * small
        assert large < 4 * 4096**2 / 2
